"""What a reader wrote from memory, compared with the library's of the same name.

An entry is the right class or function, the calls that it is tried with, and wrong
ones, each behind a sentence that names its mistake.
"""

from typing import Any

import torch

from seq2seq_lib.evaluation.blank_page.attention import ATTENTION
from seq2seq_lib.evaluation.blank_page.beam import BEAM
from seq2seq_lib.evaluation.blank_page.blocks import BLOCKS
from seq2seq_lib.evaluation.blank_page.entry import Entry
from seq2seq_lib.evaluation.blank_page.functions import FUNCTIONS
from seq2seq_lib.evaluation.blank_page.layer_norm import LAYER_NORM
from seq2seq_lib.evaluation.blank_page.positions import POSITIONS
from seq2seq_lib.evaluation.blank_page.recurrent import RECURRENT

ENTRIES: dict[str, Entry] = {
    **FUNCTIONS,
    **RECURRENT,
    **BEAM,
    **ATTENTION,
    **LAYER_NORM,
    **POSITIONS,
    **BLOCKS,
}


def blank_page(written: Any) -> None:
    """Print what is to be said of a class or a function written from memory.

    It prints ``right`` if it computes what the library's of the same name computes with
    the same weights, ``not written yet`` if it is empty, and else ``not yet`` and the
    mistake that it shows.

    Args:
        written: a class or a function; its name says what it should be.

    Raises:
        ValueError: there is no page for this name.

    >>> from seq2seq_lib.models import GRUCell
    >>> blank_page(GRUCell)
    right
    """
    name = getattr(written, "__name__", None)
    if name not in ENTRIES:
        raise ValueError(
            f"{name or type(written).__name__} is not known here: give the class or "
            f"the function itself, one of {', '.join(sorted(ENTRIES))}."
        )
    # what is built inside draws random numbers, which the caller's are not to feel
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        print(ENTRIES[name].verdict(written))  # noqa: T201, which is its purpose
