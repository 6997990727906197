"""Chapter 1 and later: matrices in colours.

Axes: R rows, C columns of any matrix.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Real
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from seq2seq_lib.plotting.grids import grid_axes
from seq2seq_lib.plotting.style import (
    INK,
    VERMILION,
    Number,
    finish,
    letters_that_fit,
    size_in_points,
    styled,
)


@styled
def heat_map(
    values: Real[Tensor, "R C"],
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    highlight: Iterable[tuple[int, int]] = (),
    limits: tuple[Number, Number] | None = None,
    signed: bool = False,
    number_format: str | None = None,
    value_label: str = "weight",
    x_label: str = "source",
    y_label: str = "target",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a matrix in colours, with symbols on both axes.

    Args:
        values: the matrix; −∞ and NaN stay blank.
        rows: a symbol for each row; numbers if absent.
        columns: a symbol for each column; numbers if absent.
        highlight: cells to frame, as (row, column).
        limits: values of the palest and the darkest colour; if absent, 0 (or the
            smallest value, where some are negative) and the largest value.
        signed: zero is white, with one colour above it and another below.
        number_format: print the values in the cells, for example with ``".2f"``.
        value_label: what the colours mean.
        x_label: what the columns are.
        y_label: what the rows are.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: the number of symbols disagrees with the matrix, the matrix has
            other than two axes, or a cell to frame lies outside.

    >>> import torch
    >>> ax = heat_map(torch.eye(3), rows=["N", "AY", "T"], columns="nit")
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['N', 'AY', 'T']
    """
    ax = grid_axes(values, rows, columns, ax, beside=0.8)
    matrix = np.ma.masked_invalid(values.detach().cpu().double().numpy())
    if limits is None:
        if not matrix.count():
            raise ValueError(
                "no value of the matrix is finite: there is nothing to draw."
            )
        limits = min(0.0, float(matrix.min())), float(matrix.max())
    low, high = limits
    if signed:
        high = max(abs(low), abs(high))
        low = -high
    many = max(values.shape) > 40
    mesh = ax.pcolormesh(
        matrix,
        cmap="RdBu" if signed else None,
        vmin=low,
        vmax=high,
        edgecolor="none" if many else "#DDDDDD",
        linewidth=0 if many else 0.5,
    )
    for row, column in highlight:
        if not (0 <= row < values.shape[0] and 0 <= column < values.shape[1]):
            raise ValueError(
                f"cannot frame the cell {(row, column)}: the matrix has "
                f"{values.shape[0]} rows and {values.shape[1]} columns."
            )
        corner = (column + 0.06, row + 0.06)
        frame = Rectangle(corner, 0.88, 0.88, fill=False, ec=VERMILION, lw=2)
        ax.add_patch(frame)
    if number_format is not None:
        _print_numbers(ax, matrix, mesh.to_rgba(matrix), number_format)
    bar = ax.figure.colorbar(mesh, ax=ax, label=value_label, fraction=0.05, pad=0.02)
    bar.outline.set_visible(False)
    return finish(ax, title=title, x_label=x_label, y_label=y_label)


def _print_numbers(
    ax: Axes, matrix: np.ma.MaskedArray, colours: np.ndarray, number_format: str
) -> None:
    numbers = {
        cell: format(float(value), number_format).replace("-", "−")
        for cell, value in np.ndenumerate(matrix.filled(np.nan))
        if not np.isnan(value)
    }
    points = 0.9 * size_in_points(ax)[0] / matrix.shape[1]
    size = letters_that_fit(list(numbers.values()), points, largest=9)
    for (row, column), number in numbers.items():
        dark = _luminance(colours[row, column, :3]) < 0.2
        ax.text(
            column + 0.5,
            row + 0.5,
            number,
            size=size,
            color="white" if dark else INK,
            ha="center",
            va="center",
        )


def _luminance(colour: np.ndarray) -> float:
    return float(np.dot([0.2126, 0.7152, 0.0722], colour**2.2))
