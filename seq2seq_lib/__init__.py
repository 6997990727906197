"""Sequence-to-sequence learning, from the first RNN to the Transformer.

Each package is a room: ``data``, ``models``, ``search``, ``training``, ``tasks``,
``evaluation``, ``pretrained``, ``recipes``, ``plotting``, ``grading``, ``cli`` and
``bench``. They stand in this order, and each uses only what comes before it.
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

import torch

# A model's configuration is known by its name once its module is imported.
from seq2seq_lib import models

if TYPE_CHECKING:
    from seq2seq_lib.pretrained import PretrainedModel

__version__ = version("seq2seq_lib")

__all__ = ["__version__", "load", "models"]


def load(name: str, *, device: torch.device | None = None) -> "PretrainedModel":
    """A trained model that comes with the library, with its card.

    Args:
        name: one of ``seq2seq_lib.pretrained.names()``.
        device: where the weights shall be; the fastest there is by default.

    Raises:
        ValueError: there is no such model, or its file is damaged.
    """
    from seq2seq_lib import pretrained  # few programs need it

    return pretrained.load(name, device=device)
