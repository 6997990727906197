"""Chapter 2: copy, reverse and sort, whose answers need no data."""

from seq2seq_lib.tasks.symbols import SymbolTask
from seq2seq_lib.tasks.task import About


class Toy(SymbolTask):
    """There is one right answer."""

    about = About(
        task="a made-up task of the course",
        data="generated",
        licence="Apache-2.0",
        limits="Good for nothing but a test.",
    )
