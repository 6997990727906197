"""Chapter 5: the tree that a search has walked."""

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from matplotlib.transforms import ScaledTranslation

from seq2seq_lib.data.vocabulary import BOS, EOS, Vocabulary
from seq2seq_lib.plotting.boxes import rounded
from seq2seq_lib.plotting.style import (
    BLUE,
    GREEN,
    INK,
    PAGE,
    VERMILION,
    axes_or_new,
    bare,
    finish,
    letters_that_fit,
    size_in_points,
    styled,
    tint,
)
from seq2seq_lib.search import Node, Trace

ROOT = -1
MOST_NODES = 300
ROW = 0.4
BOX_WIDTH = 0.58
BOX_HEIGHT = 0.33


@styled
def plot_beam_tree(
    trace: Trace,
    vocabulary: Vocabulary,
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a search from left to right, one column a step.

    A box holds a symbol and the score log p / L^α of everything up to it. Boxes that
    the search kept are solid, discarded ones pale, finished ones green; the path of
    the best hypothesis is thick. Candidates of probability 0 are left out.

    Args:
        trace: from a search called with ``trace=True``.
        vocabulary: names the symbols.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes; of their ticks only those of the steps are shown.

    Raises:
        ValueError: the trace has no nodes, or too many to be read.

    >>> nodes = [Node(-1, 4, -0.1, -0.1, True), Node(0, 2, -0.2, -0.12, True)]
    >>> trace = Trace(nodes, candidates=12, attention=None)
    >>> ax = plot_beam_tree(trace, Vocabulary("ab"))
    >>> [text.get_text() for text in ax.texts]
    ['<bos>', 'a', '−0.10', '<eos>', '−0.12']
    """
    nodes = {i: n for i, n in enumerate(trace.nodes) if n.log_probability > -math.inf}
    if not 1 <= len(nodes) <= MOST_NODES:
        raise ValueError(
            f"the tree has {len(nodes)} nodes: expected 1 to {MOST_NODES}, which a "
            "reader can follow. Search with a smaller width, max_length or vocabulary."
        )
    places = _places(nodes)
    depth = max(step for step, _ in places.values())
    half = max(abs(y) for _, y in places.values()) + 0.6
    column = min(1.0, PAGE / (depth + 1))
    width, height = column * (depth + 0.9), ROW * 2 * half
    inch = 1.0
    if ax is not None:
        points = size_in_points(ax)
        inch = min(points[0] / width, points[1] / height) / 72
    ax = axes_or_new(ax, width=max(4.5, width), height=height + 1.2)
    ax.set(xlim=(-0.45 * column, width - 0.45 * column), ylim=(height / 2, -height / 2))
    best = _best_path(nodes, places)
    for index in (ROOT, *nodes):
        _draw_node(
            ax, index, nodes, places, vocabulary, best=best, column=column, inch=inch
        )
    ax.set_xticks(
        [column * step for step in range(1, depth + 1)],
        [str(step) for step in range(1, depth + 1)],
    )
    ax.yaxis.set_visible(False)
    bare(ax)
    ax.legend(
        handles=_legend(nodes),
        title="in each box: symbol, score log p / L$^α$",
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes
        + ScaledTranslation(0, -0.38, ax.figure.dpi_scale_trans),
        ncols=4 if inch >= 1 else 2,
    )
    return finish(ax, title=title, x_label="step", y_label="")


def _places(nodes: dict[int, Node]) -> dict[int, tuple[int, float]]:
    """For every node its step and its height, such that no two branches cross.

    Each column keeps the order of its parents, children best first. A child stands
    as near to its parent as the distance of one row between boxes allows; no column
    grows much beyond the fullest one.
    """
    children: dict[int, list[int]] = {ROOT: []}
    for index, node in nodes.items():
        children[index] = []
        children[node.parent].append(index)
    for family in children.values():
        family.sort(key=lambda i: -nodes[i].log_probability)
    layers = [[ROOT]]
    while layer := [child for parent in layers[-1] for child in children[parent]]:
        layers.append(layer)
    half = 1.15 * (max(map(len, layers)) - 1) / 2
    places = {ROOT: (0, 0.0)}
    for step, layer in enumerate(layers[1:], start=1):
        wanted = [
            places[parent][1] + rank - (len(children[parent]) - 1) / 2
            for parent in layers[step - 1]
            for rank in range(len(children[parent]))
        ]
        heights = _spread_out(wanted, half)
        places |= {i: (step, y) for i, y in zip(layer, heights, strict=True)}
    return places


def _spread_out(wanted: Sequence[float], half: float) -> list[float]:
    """The heights nearest to those wanted that are 1 apart or more, in this order.

    Less the row number, heights need only not decrease: neighbours that do are
    pooled at their mean, the pool-adjacent-violators rule. Heights are cut to lie
    between −half and half.
    """
    pools: list[tuple[float, int]] = []
    for row, height in enumerate(wanted):
        mean, size = height - row, 1
        while pools and pools[-1][0] >= mean:
            other, count = pools.pop()
            mean = (mean * size + other * count) / (size + count)
            size += count
        pools.append((mean, size))
    means = [mean for mean, size in pools for _ in range(size)]
    highest = half - (len(wanted) - 1)
    return [min(max(mean, -half), highest) + row for row, mean in enumerate(means)]


def _best_path(
    nodes: dict[int, Node], places: dict[int, tuple[int, float]]
) -> set[int]:
    """The nodes of the finished hypothesis with the highest score.

    If none has finished, of the best prefix that was kept for the longest.
    """
    kept = [i for i, node in nodes.items() if node.kept] or list(nodes)
    ends = [i for i in kept if nodes[i].token == EOS]
    best = max(ends or kept, key=lambda i: (bool(ends) or places[i][0], nodes[i].score))
    path = {ROOT}
    while best != ROOT:
        path.add(best)
        best = nodes[best].parent
    return path


def _draw_node(
    ax: Axes,
    index: int,
    nodes: dict[int, Node],
    places: dict[int, tuple[int, float]],
    vocabulary: Vocabulary,
    *,
    best: set[int],
    column: float,
    inch: float,
) -> None:
    node = nodes.get(index)
    step, y = places[index][0] * column, places[index][1] * ROW
    kept = node is None or node.kept
    done = node is not None and node.kept and node.token == EOS
    colour = GREEN if done else BLUE if kept else "#AAAAAA"
    fill = tint(colour) if kept else "white"
    thick = index in best
    width = BOX_WIDTH * column
    box = rounded(step, y, width, BOX_HEIGHT)
    box.set(facecolor=fill, edgecolor=VERMILION if thick else colour)
    box.set(linewidth=2.2 if thick else 1.1, linestyle="-" if kept else "--")
    ax.add_patch(box)
    symbol = vocabulary.decode([BOS if node is None else node.token])[0]
    largest = 9.5 * min(1.0, inch)
    size = letters_that_fit([symbol], 0.9 * 72 * inch * width, largest=largest)
    look: dict[str, Any] = {
        "color": INK if kept else "#6E6E6E",
        "ha": "center",
        "zorder": 3,
        "parse_math": False,
    }
    if node is None:
        ax.text(step, y, symbol, size=size, va="center", **look)
        return
    ax.text(step, y - 0.015, symbol, size=size, va="baseline", **look)
    score = f"{node.score:.2f}".replace("-", "−")
    ax.text(step, y + 0.12, score, size=0.75 * largest, va="baseline", **look)
    before = places[node.parent]
    start = (before[0] * column + width / 2, before[1] * ROW)
    end, half = (step - width / 2, y), 0.15 * column
    curve = Path(
        [start, (start[0] + half, start[1]), (end[0] - half, y), end],
        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4],
    )
    line = PathPatch(curve, fill=False, zorder=1.5 if thick else 1)
    line.set(edgecolor=VERMILION if thick else colour, linewidth=2.4 if thick else 1.1)
    line.set_linestyle("-" if kept else "--")
    ax.add_patch(line)


def _legend(nodes: dict[int, Node]) -> list[Patch]:
    kept = Patch(fc=tint(BLUE), ec=BLUE, label="kept")
    finished = Patch(fc=tint(GREEN), ec=GREEN, label="finished")
    discarded = Patch(fc="white", ec="#AAAAAA", ls="--", label="discarded")
    best = Patch(fc="white", ec=VERMILION, lw=2.2, label="best output")
    handles = [kept, best]
    if any(node.kept and node.token == EOS for node in nodes.values()):
        handles.insert(1, finished)
    if not all(node.kept for node in nodes.values()):
        handles.insert(1, discarded)
    return handles
