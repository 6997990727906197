"""When a program waits for the emulated device, and for which line of its own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

HERE = Path(__file__).parent
OWN = (str(Path(torch.__file__).parent), str(HERE / "emulated_"))
_lists: list[list["Wait"]] = []


class Wait(NamedTuple):
    """A moment at which the program waits for the device.

    Attributes:
        why: the operation that reads, or ``upload`` for a copy that blocks.
        where: module and function that asked for it.
    """

    why: str
    where: str


def note(why: str) -> None:
    """Write down that the program waits, and which line of ours it was for."""
    if not _lists:
        return
    frame = sys._getframe(1)
    while frame and frame.f_code.co_filename.startswith(OWN):
        frame = frame.f_back
    where = "?" if frame is None else f"{frame.f_globals['__name__']}"
    name = "" if frame is None else f".{frame.f_code.co_name}"
    _lists[-1].append(Wait(why, where.removeprefix("seq2seq_lib.") + name))


@contextmanager
def waits() -> Iterator[list[Wait]]:
    """Every wait for the device inside, in order."""
    _lists.append([])
    try:
        yield _lists[-1]
    finally:
        _lists.pop()
