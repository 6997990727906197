"""What all exports share: optional engines, and the models they can take.

Axes: T positions, D width, K width of one head.
"""

import importlib
from functools import cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.models.positional import LearnedPositions, Sinusoids, sinusoids
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_blocks import Embedding
from seq2seq_lib.models.transformer_stacks import TransformerDecoder, TransformerEncoder

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
        ValueError: it is no Transformer.
    """
    model = saved.model
    if not isinstance(model.config, TransformerConfig):
        raise ValueError(  # noqa: TRY004, a reader's mistake
            f"this model is built from {type(model.config).__name__}: only Transformers"
            " can be exported, so use it as it is."
        )
    assert isinstance(model.encoder, TransformerEncoder)
    assert isinstance(model.decoder, TransformerDecoder)
    return model.config, model.encoder, model.decoder


def position_table(embedding: Embedding) -> Float[Tensor, "T D"]:
    """What the embedding adds at every position."""
    weight = embedding.embedding.weight
    match embedding.positions:
        case LearnedPositions(table=table):
            return table.detach()
        case Sinusoids():
            return sinusoids(POSITIONS, weight.shape[1]).to(weight)
        case _:
            return weight.new_zeros(POSITIONS, weight.shape[1])


@cache
def turning(width: int) -> tuple[Float[Tensor, "T K"], Float[Tensor, "T K"], Tensor]:
    """What rotary positions multiply with: cosines, sines, and a turn of 90 degrees.

    The cosine and the sine of a pair stand twice, once for each of its features. The
    same tensors are given at every call, so that a graph stores them once.
    """
    table = sinusoids(POSITIONS, width).view(POSITIONS, -1, 2)  # T K/2 2
    sine, cosine = (part.repeat_interleave(2, dim=1) for part in table.unbind(dim=2))
    quarter = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    matrix: Tensor = torch.block_diag(  # type: ignore[no-untyped-call]
        *[quarter] * (width // 2)
    )
    return cosine, sine, matrix
