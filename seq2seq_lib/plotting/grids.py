"""Chapter 1 and later: batches and masks as grids of cells.

Axes: B batch, S source, R rows, C columns of any matrix.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int
from matplotlib.axes import Axes
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import SPECIAL, Vocabulary
from seq2seq_lib.plotting.style import (
    BLUE,
    PAGE,
    SKY,
    axes_or_new,
    bare,
    check_labels,
    finish,
    letters_that_fit,
    size_in_points,
    styled,
    tint,
)

HATCH, STROKE, EMPTY = "////", "#999999", "#F0F0F0"
GAP = 0.015


@styled
def plot_batch(
    batch: Batch,
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary | None = None,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a padded batch as cells with symbols in them, padding hatched.

    Args:
        batch: a few rows.
        source_vocabulary: names the source's symbols.
        target_vocabulary: if given, what the decoder reads and what it should say
            are drawn below the source.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: the sources are no symbols.

    >>> from seq2seq_lib.data.batch import Pair
    >>> letters = Vocabulary("abc")
    >>> ax = plot_batch(Batch.from_pairs([Pair([4, 5, 6], [4])]), letters)
    >>> [text.get_text() for text in ax.texts]
    ['a', 'b', 'c', '<eos>']
    """
    if batch.source.dim() != 2:
        raise ValueError(
            f"the sources of this batch are frames, {tuple(batch.source.shape)}: only "
            "symbols can be written into cells. Draw a row of batch.source as an image."
        )
    blocks = [("source", batch.source, batch.source_mask, source_vocabulary)]
    if target_vocabulary is not None:
        for name, numbers in (
            ("decoder input", batch.decoder_input),
            ("target", batch.target),
        ):
            blocks.append((name, numbers, batch.target_mask, target_vocabulary))
    columns = max(numbers.shape[1] for _, numbers, _, _ in blocks)
    height = len(blocks) * (len(batch) + 1)
    cell = min(0.62, (PAGE - 0.9) / columns)
    ax = axes_or_new(ax, width=cell * columns + 0.9, height=0.3 * height + 0.9)
    ticks: list[float] = []
    for block, (name, numbers, mask, vocabulary) in enumerate(blocks):
        top = block * (len(batch) + 1)
        _fill_cells(ax, mask, numbers, vocabulary, top=top, columns=columns)
        ticks += [top + row + 0.5 for row in range(len(batch))]
        if len(blocks) > 1:
            ax.annotate(name, (0, top - 0.1), fontsize=9, weight="bold", va="bottom")
    ax.set(xlim=(0, columns), ylim=(height - 1, 0 if len(blocks) == 1 else -1))
    ax.set_xticks(np.arange(columns) + 0.5, [str(c) for c in range(columns)])
    ax.set_yticks(ticks, [str(row) for row in range(len(batch))] * len(blocks))
    bare(ax)
    return finish(ax, title=title, x_label="position", y_label="row of the batch")


def _fill_cells(
    ax: Axes,
    mask: Bool[Tensor, "B S"],
    numbers: Int[Tensor, "B S"],
    vocabulary: Vocabulary,
    *,
    top: int,
    columns: int,
) -> None:
    real, symbols = mask.tolist(), [vocabulary.decode(row) for row in numbers.tolist()]
    points = 0.9 * size_in_points(ax)[0] / columns
    for row, (row_real, row_symbols) in enumerate(zip(real, symbols, strict=True)):
        for column, (is_real, symbol) in enumerate(
            zip(row_real, row_symbols, strict=True)
        ):
            _draw_cell(ax, top + row, column, visible=is_real, colour=tint(SKY))
            if is_real:
                ax.text(
                    column + 0.5,
                    top + row + 0.5,
                    symbol,
                    size=letters_that_fit([symbol], points, largest=10),
                    ha="center",
                    va="center",
                    parse_math=False,
                )


@styled
def plot_mask(
    mask: Bool[Tensor, "R C"],
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    x_label: str = "looked at",
    y_label: str = "looks",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a mask: filled where a row may look, hatched where it may not.

    Args:
        mask: ``True`` = may look.
        rows: a symbol for each row.
        columns: a symbol for each column.
        x_label: what the columns are.
        y_label: what the rows are.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: the number of symbols disagrees with the mask, or the mask has
            other than two axes.

    >>> import torch
    >>> ax = plot_mask(torch.ones(2, 3, dtype=torch.bool).tril(), columns="cat")
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['c', 'a', 't']
    """
    ax = grid_axes(mask, rows, columns, ax, beside=1.1)
    for row, line in enumerate(mask.tolist()):
        for column, visible in enumerate(line):
            _draw_cell(ax, row, column, visible=visible, colour=BLUE)
    ax.legend(
        handles=[
            Patch(facecolor=BLUE, label="may look"),
            Patch(facecolor=EMPTY, edgecolor=STROKE, hatch=HATCH, label="hidden"),
        ],
        loc="upper left",
        bbox_to_anchor=(1.02, 1),
        borderaxespad=0,
    )
    return finish(ax, title=title, x_label=x_label, y_label=y_label)


def grid_axes(
    matrix: Tensor,
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    ax: Axes | None,
    *,
    beside: float,
) -> Axes:
    """Axes with a tick for each symbol; cells are about square in a new figure.

    Args:
        matrix: what the cells will show.
        rows: a symbol for each row.
        columns: a symbol for each column.
        ax: where to draw; a new figure if absent.
        beside: inches to leave for what stands to the right.
    """
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(
            f"the shape is {tuple(matrix.shape)}: expected two axes, rows and columns, "
            "neither of them 0. Pick one row of a batch, or one head."
        )
    y_ticks = _ticks("rows", rows, matrix.shape[0])
    x_ticks = _ticks("columns", columns, matrix.shape[1])
    left = 0.5 + 0.08 * max(map(len, y_ticks.values()))
    side = min(0.42, (PAGE - left - beside) / matrix.shape[1], 7 / matrix.shape[0])
    below = 0.08 * max(map(len, x_ticks.values()))
    ax = axes_or_new(
        ax,
        width=max(3.2, side * matrix.shape[1] + left + beside),
        height=side * matrix.shape[0] + 0.9 + (below if below > side else 0),
    )
    ax.set(xlim=(0, matrix.shape[1]), ylim=(matrix.shape[0], 0))
    cell = size_in_points(ax) / np.array(matrix.shape[::-1])
    size = float(np.clip(0.75 * cell.min(), 6, 9.5)) if columns or rows else 8.5
    ax.set_yticks(list(y_ticks), list(y_ticks.values()), size=size)
    ax.set_xticks(list(x_ticks), list(x_ticks.values()), size=size)
    long = {
        symbol
        for symbol in x_ticks.values()
        if letters_that_fit([symbol], 0.95 * cell[0], largest=size) < size
    }
    if columns is not None and long:
        # special symbols are long beside letters: turn all, or them alone
        turn_all = any(symbol not in SPECIAL for symbol in long)
        for label in ax.get_xticklabels():
            label.set_rotation(90 if turn_all or label.get_text() in long else 0)
    bare(ax)
    return ax


def _ticks(name: str, labels: Sequence[str] | None, size: int) -> dict[float, str]:
    """Where the ticks stand and what they say: symbols, or some of the numbers."""
    if labels is not None:
        found = check_labels(name, labels, size)
        return {i + 0.5: symbol for i, symbol in enumerate(found)}
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, size) if size / s <= 16)
    return {i + 0.5: str(i) for i in range(0, size, step)}


def _draw_cell(ax: Axes, row: int, column: int, *, visible: bool, colour: str) -> None:
    cell = Rectangle((column + GAP, row + GAP), 1 - 2 * GAP, 1 - 2 * GAP, linewidth=0)
    if visible:
        cell.set_facecolor(colour)
    else:  # hatches take the colour of the edge
        cell.set(facecolor=EMPTY, edgecolor=STROKE, hatch=HATCH)
    ax.add_patch(cell)
