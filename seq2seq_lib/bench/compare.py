"""Timing several ways to do the same work, in turns on the same machine."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch

Contenders = Mapping[str, Callable[[], object]]
"""Names, and what each of them runs in its turn."""


@dataclass(frozen=True)
class Timing:
    """Seconds for one round of work.

    Attributes:
        median: over all rounds.
        low: the lower quartile.
        high: the upper quartile.
    """

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Ratio:
    """How many times faster than the baseline, round by round.

    Attributes:
        median: over all rounds.
        low: the lower quartile.
        high: the upper quartile.
    """

    median: float
    low: float
    high: float


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let PyTorch use this many threads inside, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def take_turns(
    contenders: Contenders,
    *,
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Let every contender work once a round, in turns, and give its seconds by round.

    Taking turns spreads whatever else the machine does evenly over all of them. One
    round beforehand is not counted.

    Args:
        contenders: names, and what to run.
        rounds: how often each one is timed, at least 3.
        clock: tells the seconds.

    Raises:
        ValueError: fewer than three rounds, or nothing to compare.
    """
    if rounds < 3 or not contenders:
        raise ValueError(
            f"rounds={rounds} of {len(contenders)} contenders: quartiles need at least "
            "3 rounds, and a comparison something to compare."
        )
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for count in range(rounds + 1):
        for name, work in contenders.items():
            start = clock()
            work()
            if count:
                seconds[name].append(clock() - start)
    return seconds


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The median, the lower and the upper quartile.

    >>> quartiles([3.0, 1.0, 2.0])
    (2.0, 1.0, 3.0)
    """
    low, median, high = statistics.quantiles(values, n=4)
    return median, low, high


def ratios(
    seconds: Mapping[str, Sequence[float]], *, baseline: str
) -> dict[str, Ratio]:
    """How many times faster than the baseline each contender was in the same round.

    A round in which the machine was busy is slow for all of them: its ratios are as
    good as any, which a ratio of medians would not make use of.

    >>> ratios({"a": [2.0, 8.0, 4.0], "b": [1.0, 4.0, 2.0]}, baseline="a")["b"]
    Ratio(median=2.0, low=2.0, high=2.0)
    """
    return {
        name: Ratio(
            *quartiles([b / s for b, s in zip(seconds[baseline], values, strict=True)])
        )
        for name, values in seconds.items()
    }


def compare(
    contenders: Contenders,
    *,
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Timing]:
    """Median and quartiles of contenders that take turns, as in ``take_turns``."""
    seconds = take_turns(contenders, rounds=rounds, clock=clock)
    return {name: Timing(*quartiles(values)) for name, values in seconds.items()}


def table(timings: Mapping[str, Timing], *, baseline: str) -> str:
    """The timings as text: how many times faster than the baseline each one is.

    >>> timings = {"slow": Timing(0.2, 0.2, 0.4), "fast": Timing(0.1, 0.1, 0.1)}
    >>> print(table(timings, baseline="slow"))
    contender  median ms  quartiles ms    ratio
    slow           200.0  200.0 to 400.0   1.00
    fast           100.0  100.0 to 100.0   2.00
    """
    width = max(9, *map(len, timings))
    lines = [f"{'contender':{width}}  median ms  quartiles ms    ratio"]
    for name, timing in timings.items():
        spread = f"{1000 * timing.low:.1f} to {1000 * timing.high:.1f}"
        ratio = timings[baseline].median / timing.median
        median = 1000 * timing.median
        lines.append(f"{name:{width}}  {median:9.1f}  {spread:14} {ratio:6.2f}")
    return "\n".join(lines)
