"""``make bench``: time everything side by side; keep JSON, tables and figures."""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

from seq2seq_lib.bench.compare import take_turns, threads
from seq2seq_lib.bench.decoding import bench_decoding
from seq2seq_lib.bench.recurrent import bench_recurrent
from seq2seq_lib.bench.report import Comparison, setting
from seq2seq_lib.bench.training import bench_training
from seq2seq_lib.bench.variants import (
    attention_variants,
    recurrent_variants,
    transformer_variants,
)
from seq2seq_lib.files import cache_directory, write_whole

STORE = Path(__file__).parents[1] / "pretrained" / "results" / "bench"
"""Where the book finds what it draws."""


def bench_variants(*, rounds: int) -> list[Comparison]:
    """What chapters show against what training uses, on one thread."""
    comparisons = []
    with threads(1):
        for name, make in (
            ("self-attention, forward and backward", attention_variants),
            ("GRU, forward and backward", recurrent_variants),
            ("Transformer, loss and gradients", transformer_variants),
        ):
            seconds = take_turns(make(), rounds=rounds)
            comparisons.append(Comparison(name, next(iter(seconds)), 1, seconds))
    return comparisons


BENCHES: dict[str, tuple[Callable[..., list[Comparison]], int]] = {
    "training": (bench_training, 24),
    "recurrent": (bench_recurrent, 24),
    "decoding": (bench_decoding, 15),
    "forms": (bench_variants, 15),
}
"""Each with its usual number of rounds."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run benches and write what they found."""
    parser = argparse.ArgumentParser(prog="python -m seq2seq_lib.bench")
    parser.add_argument(
        "--only", choices=BENCHES, action="append", help="one bench; may be repeated"
    )
    parser.add_argument("--rounds", type=int, help="turns of each contender")
    parser.add_argument(
        "--output",
        type=Path,
        default=cache_directory() / "bench",
        help="where to write JSON, tables and figures (default: %(default)s)",
    )
    parser.add_argument(
        "--store", action="store_true", help=f"also write the JSON into {STORE.name}/"
    )
    options = parser.parse_args(arguments)
    for name in options.only or BENCHES:
        bench, rounds = BENCHES[name]
        comparisons = bench(rounds=options.rounds or rounds)
        tables = "\n\n".join(comparison.table() for comparison in comparisons)
        print(f"\n{tables}\n")
        found = {**setting(), "comparisons": [c.to_dict() for c in comparisons]}
        text = json.dumps(found, indent=1) + "\n"
        write_whole(options.output / f"{name}.json", text)
        write_whole(options.output / f"{name}.txt", tables + "\n")
        for number, comparison in enumerate(comparisons, start=1):
            write_whole(options.output / f"{name}-{number}.svg", comparison.figure())
        if options.store:
            write_whole(STORE / f"{name}.json", text)
        print(f"kept in {options.output}")


if __name__ == "__main__":
    main()
