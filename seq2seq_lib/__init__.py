"""Sequence-to-sequence learning, from the first RNN to the Transformer.

Each package is a room: ``data``, ``models``, ``search``, ``training``, ``tasks``,
``evaluation``, ``pretrained``, ``recipes``, ``plotting``, ``cli``, ``grading`` and
``bench``. They stand in this order, and each uses only what comes before it.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

# A model's configuration is known by its name once its module is imported.
from seq2seq_lib import models

if TYPE_CHECKING:
    from seq2seq_lib.pretrained.weights import PretrainedModel

__version__ = version("seq2seq_lib")

__all__ = ["__version__", "load", "models"]


def load(name: str) -> "PretrainedModel":
    """A trained model that comes with the library, with its card.

    Args:
        name: one of ``seq2seq_lib.pretrained.weights.names()``.

    Raises:
        ValueError: there is no such model, or its file is damaged.
    """
    from seq2seq_lib.pretrained import weights  # few programs need it

    return weights.load(name)
