"""What all figures share: the style file, its palette, and how axes are made.

The palette stands in ``course.mplstyle`` and nowhere else.
"""

import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_hex, to_rgb
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

STYLE = Path(__file__).with_name("course.mplstyle")
CYCLE = mpl.rc_params_from_file(STYLE, use_default_template=False)["axes.prop_cycle"]
PALETTE: tuple[str, ...] = tuple(CYCLE.by_key()["color"])
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY = PALETTE
INK = "#222222"
PAGE = 7.0
"""Inches across a page of the book."""

Number = int | float
"""The checker of the tests, unlike others, does not take an int for a float."""

styled = plt.style.context(STYLE)
"""Decorates a function so that all it draws follows the style."""


def use_style() -> None:
    """Follow the course's style from here on, also in figures of your own."""
    plt.style.use(STYLE)


def axes_or_new(ax: Axes | None, *, width: Number = PAGE, height: Number = 3.5) -> Axes:
    """The axes given, or those of a new figure of this size in inches."""
    return plt.subplots(figsize=(width, height))[1] if ax is None else ax


def size_in_points(ax: Axes) -> tuple[float, float]:
    """About how wide and high the axes are; the layout may still change it a little."""
    scale = 72 / ax.figure.dpi
    return scale * ax.bbox.width, scale * ax.bbox.height


def bare(ax: Axes) -> None:
    """Leave nothing around what is drawn but its labels."""
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def finish(ax: Axes, *, title: str, x_label: str, y_label: str) -> Axes:
    """Label the axes and break the title into lines that fit."""
    ax.set(xlabel=x_label, ylabel=y_label)
    letter = 0.53 * mpl.rcParams["axes.titlesize"]
    ax.set_title(textwrap.fill(title, max(20, int(size_in_points(ax)[0] / letter))))
    return ax


def letters_that_fit(
    texts: Iterable[str], points: Number, *, largest: Number, formulas: bool = False
) -> float:
    """The font size, from 5 to ``largest``, at which no text is wider than this."""
    font = FontProperties(family=mpl.rcParams["font.family"], size=1)
    widest = max(
        text_to_path.get_text_width_height_descent(
            text, font, formulas and is_math_text(text)
        )[0]
        for text in texts
    )
    return float(max(5, min(largest, points / widest))) if widest else float(largest)


def tint(colour: str) -> str:
    """A colour mixed with white, pale enough to write on."""
    red, green, blue = (0.3 * part + 0.7 for part in to_rgb(colour))
    return to_hex((red, green, blue))


def check_labels(name: str, labels: Sequence[str], size: int) -> list[str]:
    """The labels as a list, if there are as many as there are cells.

    Raises:
        ValueError: their number disagrees with the data.
    """
    if len(labels) != size:
        raise ValueError(
            f"{len(labels)} {name} labels for {size} {name}: give one symbol for each, "
            "special symbols such as <eos> included."
        )
    return list(labels)
