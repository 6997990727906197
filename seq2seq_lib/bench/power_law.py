"""How fast a cost grows: the exponent b of a power law, cost = a · size^b."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

RESAMPLES = 1000

Number = int | float
"""The checker of the tests, unlike others, does not take an int for a float."""


class Exponent(NamedTuple):
    """An exponent with the interval that holds it in 95 of 100 resamples.

    Attributes:
        value: b, from the medians over all rounds.
        low: the lower end of the interval.
        high: the upper end.
    """

    value: float
    low: float
    high: float


def exponent(sizes: Sequence[Number], costs: Sequence[Number]) -> float:
    """The slope of the least-squares line through (log size, log cost).

    Raises:
        ValueError: fewer than two different sizes, not one cost for each, or one of
            them not above 0.

    >>> round(exponent([1, 2, 4], [5, 20, 80]), 6)
    2.0
    """
    x, y = np.asarray(sizes, dtype=float), np.asarray(costs, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(set(x.tolist())) < 2:
        raise ValueError(
            f"sizes of the shape {x.shape} and costs of the shape {y.shape}: a line "
            "needs one cost for each of at least two different sizes."
        )
    if not (x.min() > 0 and y.min() > 0):
        raise ValueError(
            f"the smallest size is {x.min():g} and the smallest cost {y.min():g}: a "
            "power law has a logarithm only above 0."
        )
    log_x = np.log(x) - np.log(x).mean()
    return float(log_x @ np.log(y) / (log_x @ log_x))


def fit_exponent(
    sizes: Sequence[int], rounds: Sequence[Sequence[Number]], *, seed: int = 0
) -> Exponent:
    """The exponent of the medians, and how far it moves with other rounds.

    Sizes take turns within a round, so what disturbed the machine disturbed all of
    them. Whole rounds are therefore drawn, with replacement, not single times.

    Args:
        sizes: what grows.
        rounds: for each size its costs, one a round.
        seed: of the resampling.

    >>> fit = fit_exponent([1, 2, 4], [[3.0, 3.0], [6.0, 6.0], [12.0, 12.0]])
    >>> round(fit.value, 6)
    1.0
    """
    costs = np.asarray(rounds, dtype=float)  # sizes by rounds
    count = costs.shape[1]

    def of_medians(chosen: np.ndarray) -> float:
        return exponent(sizes, np.median(costs[:, chosen], axis=1).tolist())

    draws = np.random.default_rng(seed).integers(count, size=(RESAMPLES, count))
    low, high = np.percentile([of_medians(draw) for draw in draws], [2.5, 97.5])
    return Exponent(of_medians(np.arange(count)), float(low), float(high))
