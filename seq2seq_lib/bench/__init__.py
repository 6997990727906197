"""Side-by-side timings: what is compared runs in turns, and only ratios count."""

from seq2seq_lib.bench.compare import (
    Ratio,
    Timing,
    compare,
    ratios,
    table,
    take_turns,
    threads,
)

__all__ = ["Ratio", "Timing", "compare", "ratios", "table", "take_turns", "threads"]
