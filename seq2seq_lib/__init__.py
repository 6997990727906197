"""Sequence-to-sequence learning, from the first RNN to the Transformer.

The modules stand in the order in which the course introduces them; each uses only
what came before.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

# A model's configuration is known by its name once its module is imported.
from seq2seq_lib import (
    lookup,
    rnn_attention,
    rnn_seq2seq,
    self_attention,
    transformer,
)

if TYPE_CHECKING:
    from seq2seq_lib.weights import ShippedModel

__version__ = version("seq2seq_lib")

__all__ = [
    "__version__",
    "load",
    "lookup",
    "rnn_attention",
    "rnn_seq2seq",
    "self_attention",
    "transformer",
]


def load(name: str) -> "ShippedModel":
    """A trained model that comes with the library, with its card.

    Args:
        name: one of ``seq2seq_lib.weights.names()``.

    Raises:
        ValueError: there is no such model, or its file is damaged.
    """
    from seq2seq_lib import weights  # training code, which few programs need

    return weights.load(name)
