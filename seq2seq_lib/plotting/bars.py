"""Chapter 1 and later: bars and histograms."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter, ScalarFormatter

from seq2seq_lib.plotting.curves import (
    Interval,
    Spread,
    check_series,
    interval_of,
    whole_numbers,
)
from seq2seq_lib.plotting.style import (
    BLUE,
    CYCLE,
    INK,
    PALETTE,
    Number,
    axes_or_new,
    finish,
    styled,
)


@styled
def plot_bars(
    values: Mapping[str, Number | Sequence[Number]],
    *,
    value_label: str,
    name_label: str,
    vertical: bool = False,
    number_format: str = ".3g",
    spread: Spread = Spread.RANGE,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a bar for each value, with the number printed at its end.

    Args:
        values: a name and its value, or its values over seeds.
        value_label: what the values are.
        name_label: what the names are.
        vertical: let the bars stand instead of lie.
        number_format: how to print the values, for example ``".1%"``.
        spread: what the error bars span where there are several values.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: there is nothing to draw.

    >>> ax = plot_bars(
    ...     {"shuffled": 0.31, "buckets": 0.02},
    ...     value_label="padding",
    ...     name_label="batches",
    ...     number_format=".0%",
    ... )
    >>> [text.get_text() for text in ax.texts]
    ['31%', '2%']
    """
    if not values:
        raise ValueError("no bars to draw: give at least one name and its value.")
    ax = axes_or_new(ax, height=3.5 if vertical else 1.0 + 0.42 * len(values))
    names = list(values)
    mean, low, high = np.array([interval_of(v, spread) for v in values.values()]).T
    error = np.maximum([mean - low, high - mean], 0) if (high > low).any() else None
    numbers = [format(m, number_format).replace("-", "−") for m in mean]
    formatter = (
        PercentFormatter(1) if number_format.endswith("%") else ScalarFormatter()
    )
    if vertical:
        bars = ax.bar(names, mean, 0.65, color=BLUE, yerr=error, ecolor=INK)
        ax.yaxis.set_major_formatter(formatter)
        ax.grid(visible=False, axis="x")
        ax.margins(y=0.12)
    else:
        bars = ax.barh(names, mean, 0.65, color=BLUE, xerr=error, ecolor=INK)
        ax.xaxis.set_major_formatter(formatter)
        ax.grid(visible=False, axis="y")
        ax.margins(x=0.12)
        ax.invert_yaxis()
    ax.bar_label(bars, numbers, padding=4)
    if error is not None:
        value_label = f"{value_label} ({spread.value})"
    x_label, y_label = (
        (name_label, value_label) if vertical else (value_label, name_label)
    )
    return finish(ax, title=title, x_label=x_label, y_label=y_label)


@styled
def plot_dots(
    values: Mapping[str, Number | Interval],
    *,
    groups: Mapping[str, str],
    value_label: str,
    name_label: str,
    number_format: str = ".3g",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw a dot for each value, one below the other, with the number beside it.

    Unlike bars, dots may stand on an axis that does not begin at 0, and what has no
    interval shows none.

    Args:
        values: a name and its value, or its value with the ends of an interval.
        groups: for every name the group whose colour and marker it has; their order
            here is that of the legend.
        value_label: what the values are.
        name_label: what the names are.
        number_format: how to print the values, for example ``".1%"``.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: there is nothing to draw, a name has no group, or there are more
            groups than can be told apart.

    >>> ax = plot_dots(
    ...     {"ours": Interval(0.31, 0.29, 0.33), "a paper": 0.22},
    ...     groups={"ours": "measured", "a paper": "published"},
    ...     value_label="WER",
    ...     name_label="system",
    ...     number_format=".0%",
    ... )
    >>> [text.get_text() for text in ax.texts]
    ['31%', '22%']
    """
    if lost := [name for name in values if name not in groups]:
        raise ValueError(f"{lost[0]!r} is in no group: name one for every value.")
    kinds = dict.fromkeys(group for name, group in groups.items() if name in values)
    check_series("groups", kinds)
    ax = axes_or_new(ax, height=1.2 + 0.3 * len(values))
    looks = dict(zip(kinds, CYCLE, strict=False))
    for row, (name, value) in enumerate(values.items()):
        if not isinstance(value, Interval):
            value = Interval(value, value, value)
        group = groups[name]
        look = looks[group] | {"linestyle": "none", "capsize": 0}
        error = [[value.mean - value.low], [value.high - value.mean]]
        spreads = value.high > value.low
        ax.errorbar([value.mean], [row], xerr=error if spreads else None, **look)
        number = format(value.mean, number_format).replace("-", "−")
        ax.annotate(
            number, (value.high, row), (7, 0), textcoords="offset points", va="center"
        )
    formatter = (
        PercentFormatter(1) if number_format.endswith("%") else ScalarFormatter()
    )
    ax.xaxis.set_major_formatter(formatter)
    ax.set_yticks(range(len(values)), list(values))
    ax.margins(x=0.15)
    ax.set_ylim(len(values) - 0.4, -0.6)
    handles = [Line2D([], [], label=k, **look) for k, look in looks.items()]
    for handle in handles:
        handle.set_linestyle("none")
    ax.legend(handles=handles)
    return finish(ax, title=title, x_label=value_label, y_label=name_label)


@styled
def plot_histogram(
    values: Mapping[str, Iterable[int]],
    *,
    x_label: str,
    y_label: str = "share",
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw how often each whole number occurs, as a share of its series.

    Shares make series of different sizes comparable; their bars stand side by side.

    Args:
        values: a name and its numbers, for example lengths.
        x_label: what the numbers are.
        y_label: what they are a share of.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: there is no series, or one is empty.

    >>> ax = plot_histogram({"letters": [3, 3, 5, 4]}, x_label="length")
    >>> [float(bar.get_height()) for bar in ax.patches]
    [0.5, 0.25, 0.25]
    """
    check_series("series", values)
    ax = axes_or_new(ax, height=3.0)
    width = 0.85 / len(values)
    for index, (name, series) in enumerate(values.items()):
        counts = sorted(Counter(series).items())
        if not counts:
            raise ValueError(f"the series {name!r} is empty: leave it out.")
        x, count = np.array(counts).T
        ax.bar(
            x + (index - (len(values) - 1) / 2) * width,
            count / count.sum(),
            width,
            color=PALETTE[index],
            hatch=("", "////", "....", "xxxx")[index % 4],
            edgecolor="white",
            linewidth=0.4,
            label=name,
        )
    ax.xaxis.set_major_locator(whole_numbers(most=20))
    ax.yaxis.set_major_formatter(PercentFormatter(1))
    ax.grid(visible=False, axis="x")
    ax.legend()
    return finish(ax, title=title, x_label=x_label, y_label=y_label)
