"""Chapter 3 and later: curves of what was measured, with its spread over seeds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from seq2seq_lib.plotting.style import (
    CYCLE,
    INK,
    PALETTE,
    Number,
    axes_or_new,
    finish,
    styled,
)
from seq2seq_lib.training.history import History

Points = Iterable[tuple[Number, Number | Sequence[Number]]]
"""Pairs of x and a value, or of x and one value for each seed."""


class Spread(Enum):
    """What an error bar spans: all seeds, a standard error, or the middle half."""

    RANGE = "mean, lowest to highest"
    STANDARD_ERROR = "mean ± standard error"
    QUARTILES = "median, lower to upper quartile"


class Interval(NamedTuple):
    """The mean or median of some values, and what its error bar spans."""

    mean: float
    low: float
    high: float


def interval_of(value: Number | Sequence[Number], spread: Spread) -> Interval:
    """Mean and spread of one value, or of one for each seed."""
    values = np.atleast_1d(np.asarray(value, dtype=float))
    if not values.size:
        raise ValueError("a point has no value: give a number, or one for each seed.")
    mean = values.mean()
    if spread is Spread.RANGE:
        return Interval(mean, values.min(), values.max())
    if spread is Spread.QUARTILES:
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75], method="weibull")
        return Interval(median, low, high)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Interval(mean, mean - error, mean + error)


@styled
def plot_lines(
    curves: Mapping[str, Points],
    *,
    x_label: str,
    y_label: str,
    spread: Spread = Spread.RANGE,
    band: bool = False,
    logarithmic: bool = False,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw curves that colour, line and marker tell apart.

    Args:
        curves: a name and its points (x, value), or (x, values over seeds).
        x_label: what x is.
        y_label: what the values are.
        spread: what the error bars span where a point has several values.
        band: shade the spread instead of drawing error bars.
        logarithmic: equal steps up mean equal factors, as for gradient norms.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: there is no curve, one has no points, or there are more curves
            than can be told apart.

    >>> ax = plot_lines(
    ...     {"GRU": [(4, [0.1, 0.3]), (8, [0.4, 0.5])]}, x_label="length", y_label="PER"
    ... )
    >>> ax.get_lines()[0].get_ydata().tolist()
    [0.2, 0.45]
    """
    check_series("curves", curves)
    ax = axes_or_new(ax)
    has_spread, whole = False, True
    handles: list[Any] = []
    for (name, points), look in zip(curves.items(), CYCLE, strict=False):
        pairs = [(x, interval_of(value, spread)) for x, value in points]
        if not pairs:
            raise ValueError(f"the curve {name!r} has no points: leave it out.")
        x = np.array([x for x, _ in pairs])
        mean, low, high = np.array([interval for _, interval in pairs]).T
        whole &= bool((x == x.round()).all())
        spreads = bool((high > low).any())
        has_spread |= spreads
        if len(x) > 40:
            look = look | {"marker": ""}
        if spreads and not band:
            error = np.maximum([mean - low, high - mean], 0)
            handles.append(ax.errorbar(x, mean, error, label=name, **look))
        else:
            handles += ax.plot(x, mean, label=name, **look)
            if spreads:
                ax.fill_between(x, low, high, color=look["color"], alpha=0.2, lw=0)
    if whole:
        ax.xaxis.set_major_locator(whole_numbers())
    if logarithmic:
        ax.set_yscale("log")
    ax.legend(
        handles=handles,
        title=spread.value if has_spread else None,
        alignment="left",
        handlelength=3.2,
    )
    return finish(ax, title=title, x_label=x_label, y_label=y_label)


@styled
def plot_history(
    histories: Mapping[str, History],
    *,
    metric: str | None = None,
    title: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draw how the loss, or a metric, moved while models trained.

    The row whose weights were kept is ringed.

    Args:
        histories: a name and the history of its run.
        metric: one of the names that ``evaluate`` returned; the training loss if
            absent.
        title: the finding.
        ax: where to draw; a new figure if absent.

    Returns:
        the axes.

    Raises:
        ValueError: no row of a history has this metric, or there is no history.

    >>> from seq2seq_lib.training.history import Row
    >>> rows = [Row(100, 1, 2.0, 1e-3, 5.0, {"per": 0.5})]
    >>> ax = plot_history({"GRU": History(rows)}, metric="per")
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('step', 'per')
    """
    curves: dict[str, list[tuple[Number, Number]]] = {}
    kept: list[tuple[Number, Number] | None] = []
    for name, history in histories.items():
        points = {
            index: (row.step, row.loss if metric is None else row.metrics[metric])
            for index, row in enumerate(history.rows)
            if metric is None or metric in row.metrics
        }
        if not points:
            known = sorted({key for row in history.rows for key in row.metrics})
            raise ValueError(
                f"the history of {name!r} has {len(history.rows)} rows, none with "
                f"{metric or 'a loss'!r}: it knows {', '.join(known) or 'no metric'}."
            )
        curves[name] = list(points.values())
        kept.append(None if history.best is None else points.get(history.best))
    label = "training loss" if metric is None else metric
    ax = plot_lines(curves, x_label="step", y_label=label, title=title, ax=ax)
    if rings := [point for point in kept if point is not None]:
        x, y = zip(*rings, strict=True)
        ax.scatter(x, y, 120, label="weights kept", fc="none", ec=INK, zorder=3)
        ax.legend(handlelength=3.2)
    return ax


def check_series(name: str, series: Mapping[str, object]) -> None:
    """Refuse none, and more than the palette tells apart."""
    if not 1 <= len(series) <= len(PALETTE):
        raise ValueError(
            f"{len(series)} {name} in one figure: expected 1 to {len(PALETTE)}, which "
            "a reader can tell apart. Split them over several axes."
        )


def whole_numbers(most: int = 10) -> MaxNLocator:
    """Ticks at whole numbers only."""
    return MaxNLocator(most, integer=True, steps=[1, 2, 5, 10])
