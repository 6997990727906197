"""Sequence-to-sequence learning, from the first RNN to the Transformer.

The modules stand in the order in which the course introduces them; each uses only
what came before.
"""

from importlib.metadata import version

# A model's configuration is known by its name once its module is imported.
from seq2seq_lib import (
    lookup,
    rnn_attention,
    rnn_seq2seq,
    self_attention,
    transformer,
)

__version__ = version("seq2seq_lib")

__all__ = [
    "__version__",
    "lookup",
    "rnn_attention",
    "rnn_seq2seq",
    "self_attention",
    "transformer",
]
