"""Chapter 2 and later: boxes and arrows, for pictures of how models are built."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from seq2seq_lib.plotting.style import (
    BLUE,
    INK,
    PAGE,
    Number,
    axes_or_new,
    finish,
    letters_that_fit,
    size_in_points,
    styled,
    tint,
)


@dataclass(frozen=True)
class Box:
    """A rounded box with text in it. One unit is an inch on a page 7 wide.

    Attributes:
        text: what stands in it; may have several lines.
        x: of its centre, growing to the right.
        y: of its centre, growing upwards.
        width: from left to right.
        height: from bottom to top.
        colour: of its border, and paler of its inside.
    """

    text: str
    x: Number
    y: Number
    width: Number = 1.2
    height: Number = 0.5
    colour: str = BLUE


@dataclass(frozen=True)
class Arrow:
    """An arrow from the border of one box to that of another.

    Attributes:
        start: name of the box it leaves.
        end: name of the box it points to.
        text: what stands beside its middle.
        bend: how far its middle strays to the right of the straight line, as a share
            of the length; negative to the left.
        dashed: draw it dashed.
    """

    start: str
    end: str
    text: str = ""
    bend: Number = 0.0
    dashed: bool = False


@styled
def plot_boxes(
    boxes: Mapping[str, Box],
    arrows: Iterable[Arrow] = (),
    *,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw boxes where they are put, and arrows between them.

    Args:
        boxes: a name, for arrows to refer to, and its box.
        arrows: from box to box, by name.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes, which are hidden.

    Raises:
        ValueError: there is no box, or an arrow names one that is not there.

    >>> boxes = {"in": Box("knight", 0, 0), "out": Box("N AY T", 2, 0)}
    >>> ax = plot_boxes(boxes, [Arrow("in", "out")])
    >>> [text.get_text() for text in ax.texts]
    ['knight', 'N AY T']
    """
    if not boxes:
        raise ValueError("no boxes to draw: give at least one.")
    left = min(box.x - box.width / 2 for box in boxes.values()) - 0.1
    right = max(box.x + box.width / 2 for box in boxes.values()) + 0.1
    bottom = min(box.y - box.height / 2 for box in boxes.values()) - 0.1
    top = max(box.y + box.height / 2 for box in boxes.values()) + 0.1
    edge = 0.1  # inches that the layout keeps free
    inch = min(1.0, (PAGE - edge) / (right - left))
    if ax is not None:
        width, height = size_in_points(ax)
        inch = min(width / (right - left), height / (top - bottom)) / 72
    ax = axes_or_new(
        ax,
        width=inch * (right - left) + edge,
        height=inch * (top - bottom) + edge + (0.4 if title else 0),
    )
    ax.set(xlim=(left, right), ylim=(bottom, top), aspect="equal")
    ax.set_axis_off()
    patches = {name: _draw(ax, box, 72 * inch) for name, box in boxes.items()}
    for arrow in arrows:
        if unknown := {arrow.start, arrow.end} - set(boxes):
            raise ValueError(
                f"the arrow {arrow.start} → {arrow.end} needs a box called "
                f"{', '.join(sorted(unknown))}: there are {', '.join(boxes)}."
            )
        start, end = boxes[arrow.start], boxes[arrow.end]
        patch = FancyArrowPatch(
            (start.x, start.y),
            (end.x, end.y),
            patchA=patches[arrow.start],
            patchB=patches[arrow.end],
            shrinkA=2,
            shrinkB=2,
            arrowstyle="-|>",
            mutation_scale=11,
            connectionstyle=f"arc3,rad={arrow.bend}",
            linestyle="--" if arrow.dashed else "-",
            linewidth=1.3,
            color=INK,
        )
        ax.add_patch(patch)
        if arrow.text:
            x = (start.x + end.x) / 2 + arrow.bend * (end.y - start.y) / 2
            y = (start.y + end.y) / 2 - arrow.bend * (end.x - start.x) / 2
            ground = {"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none"}
            ax.text(x, y, arrow.text, size=8, ha="center", va="center", bbox=ground)
    return finish(ax, title=title, x_label="", y_label="")


def _draw(ax: Axes, box: Box, unit: float) -> FancyBboxPatch:
    """Draw one box, where ``unit`` is the length of one unit in points."""
    lines = box.text.split("\n")
    size = min(
        letters_that_fit(lines, 0.86 * box.width * unit, largest=10, formulas=True),
        0.75 * box.height * unit / len(lines),
    )
    ax.text(box.x, box.y, box.text, size=size, ha="center", va="center", zorder=3)
    patch = rounded(box.x, box.y, box.width, box.height)
    patch.set(facecolor=tint(box.colour), edgecolor=box.colour, linewidth=1.4)
    ax.add_patch(patch)
    return patch


def rounded(x: Number, y: Number, width: Number, height: Number) -> FancyBboxPatch:
    """A box with round corners about a centre."""
    corner = f"round,pad=0,rounding_size={min(0.12, height / 4, width / 2)}"
    lower_left = (x - width / 2, y - height / 2)
    return FancyBboxPatch(lower_left, width, height, boxstyle=corner, zorder=2)
