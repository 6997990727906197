"""What all exports share: optional engines, and the models they can take.

Axes: T positions, D width.
"""

import importlib
from typing import Any

from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.positional import PositionKind, sinusoids
from seq2seq_lib.training.checkpoint import SavedModel
from seq2seq_lib.transformer import (
    TransformerConfig,
    TransformerDecoder,
    TransformerEncoder,
)
from seq2seq_lib.transformer_blocks import Embedding

POSITIONS = 1024
"""How many positions are written where the model itself has no limit."""


def engine(name: str) -> Any:
    """Import an optional package, untyped as these are.

    Raises:
        ValueError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed, which this export needs: run "
            "pip install 'seq2seq_lib[export]'."
        ) from error


def transformer_parts(
    saved: SavedModel,
) -> tuple[TransformerConfig, TransformerEncoder, TransformerDecoder]:
    """The parts of a model that can be exported.

    Raises:
        ValueError: it is no Transformer, or has rotary positions.
    """
    model = saved.model
    if not isinstance(model.config, TransformerConfig):
        raise ValueError(  # noqa: TRY004, a reader's mistake
            f"this model is built from {type(model.config).__name__}: only Transformers"
            " can be exported, so use it as it is."
        )
    if model.config.positions is PositionKind.ROTARY:
        raise ValueError(
            "positions=rotary cannot be exported: expected sinusoidal, learned or none."
        )
    assert isinstance(model.encoder, TransformerEncoder)
    assert isinstance(model.decoder, TransformerDecoder)
    return model.config, model.encoder, model.decoder


def position_table(embedding: Embedding) -> Float[Tensor, "T D"]:
    """What the embedding adds at every position."""
    weight = embedding.embedding.weight
    match embedding.positions.kind:
        case PositionKind.LEARNED:
            return embedding.positions.table.detach()
        case PositionKind.SINUSOIDAL:
            return sinusoids(POSITIONS, weight.shape[1]).to(weight)
        case _:
            return weight.new_zeros(POSITIONS, weight.shape[1])
