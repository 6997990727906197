"""``python -m seq2seq_lib.bench.growth``: how time and memory grow, with exponents.

Time is measured: every size of every curve of an axis takes its turn in every round.
Memory is counted, so one run is enough. The exponents are those of the four largest
sizes, since small ones mostly measure what does not grow.
"""

import argparse
import functools
import json
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.bench.compare import take_turns
from seq2seq_lib.bench.growing_work import GROWTHS, Axis, Growth
from seq2seq_lib.bench.memory import peak_bytes
from seq2seq_lib.bench.power_law import exponent, fit_exponent
from seq2seq_lib.files import cache_directory, write_whole

UPPER = 4
"""How many of the largest sizes the exponents are fitted to."""


def measure(growths: Iterable[Growth], *, rounds: int) -> list[dict[str, Any]]:
    """Time and count growths along one axis.

    Args:
        growths: what to measure; they take turns, size by size.
        rounds: how often each size is timed.

    Returns:
        a dictionary for each: its sizes, ``seconds`` by size and round, ``bytes`` by
        size, and the exponents ``time`` and ``memory``.
    """
    growths = list(growths)
    work = {
        f"{growth.name} {size}": growth.make(size)
        for growth in growths
        for size in growth.sizes
    }
    turns = take_turns(work, rounds=rounds)
    curves = []
    for growth in growths:
        seconds = [
            [float(f"{value:.4g}") for value in turns[f"{growth.name} {size}"]]
            for size in growth.sizes
        ]
        counted = [
            peak_bytes(functools.partial(_twice, growth, size)) for size in growth.sizes
        ]
        upper = growth.sizes[-UPPER:]
        curves.append(
            {
                "axis": growth.axis.value,
                "name": growth.name,
                "sizes": list(growth.sizes),
                "seconds": seconds,
                "bytes": counted,
                "time": fit_exponent(upper, seconds[-UPPER:])._asdict(),
                "memory": exponent(upper, counted[-UPPER:]),
            }
        )
    return curves


def _twice(growth: Growth, size: int) -> None:
    # an optimizer has its state from the first step on, so the second one is larger
    work = growth.make(size)
    work()
    work()


def main(arguments: list[str] | None = None) -> None:
    """Measure every curve and keep the figures as one JSON file."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11, help="how often to time")
    parser.add_argument(
        "--output",
        type=Path,
        default=cache_directory() / "bench" / "growth.json",
        help="the file to write; the book draws pretrained/results/bench/growth.json",
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    curves = []
    for axis in Axis:
        those = [growth for growth in GROWTHS if growth.axis is axis]
        for curve in measure(those, rounds=options.rounds):
            time = curve["time"]
            print(
                f"{curve['axis']:15}  {curve['name']:18}  time {time['value']:.2f} "
                f"({time['low']:.2f} to {time['high']:.2f})  "
                f"memory {curve['memory']:.2f}",
                flush=True,
            )
            curves.append(curve)
    result = {
        "machine": platform.machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "rounds": options.rounds,
        "upper": UPPER,
        "curves": curves,
    }
    write_whole(options.output, json.dumps(result) + "\n")
    print(f"kept in {options.output}")


if __name__ == "__main__":
    main()
