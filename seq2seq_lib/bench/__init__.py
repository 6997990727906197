"""Side-by-side timings: what is compared runs in turns, and only ratios count."""

from seq2seq_lib.bench.compare import Timing, compare, table

__all__ = ["Timing", "compare", "table"]
