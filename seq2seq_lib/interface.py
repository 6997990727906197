"""Chapter 2: the contract between encoders, decoders, and all that drives them.

An encoder turns a padded batch into an ``EncoderOutput``. A decoder reads it and writes
one symbol at a time. Search, training and evaluation know only the classes
of this module, never which model they drive.

Axes: B batch, S source, T target, D width of its states, F features of a frame,
V vocabulary, R rows kept.
"""

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor, nn

from seq2seq_lib.configuration import from_mapping
from seq2seq_lib.data.batch import Batch


@dataclass(frozen=True)
class EncoderOutput:
    """What an encoder hands to a decoder.

    Attributes:
        states: one vector for every source position.
        mask: ``True`` where ``states`` belongs to a real symbol.
        summary: one vector for the whole source.
    """

    states: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    summary: Float[Tensor, "B D"]

    def __len__(self) -> int:
        return len(self.summary)

    @staticmethod
    def averaged(
        states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
    ) -> "EncoderOutput":
        """States whose summary is their mean over the real positions."""
        total = (states * mask[..., None]).sum(dim=1)
        return EncoderOutput(states, mask, total / mask.sum(dim=1, keepdim=True))

    def reorder(self, rows: Int[Tensor, " R"]) -> "EncoderOutput":
        """Keep these batch rows, in this order; a row may be repeated."""
        return EncoderOutput(self.states[rows], self.mask[rows], self.summary[rows])


def reorder(state: Any, rows: Int[Tensor, " R"]) -> Any:
    """Keep these batch rows of a decoder's state, in this order, as a search does.

    A decoder of your own need not derive its state from ``DecoderState``: a tensor
    whose first axis is the batch will do, and so will a tuple, list or dictionary.

    >>> reorder((torch.tensor([1, 2]), "kept"), torch.tensor([1, 1]))
    (tensor([2, 2]), 'kept')
    """
    if hasattr(state, "reorder"):
        return state.reorder(rows)
    if isinstance(state, Tensor):
        return state[rows]
    if isinstance(state, dict):
        return {name: reorder(part, rows) for name, part in state.items()}
    if isinstance(state, (tuple, list)):
        parts = [reorder(part, rows) for part in state]
        # a named tuple takes its parts one by one
        return type(state)(*parts) if hasattr(state, "_fields") else type(state)(parts)
    return state


class Encoder(nn.Module, ABC):
    """Turns a padded batch of symbols or frames into states.

    Attributes:
        width: D, the size of the states.
    """

    width: int

    @abstractmethod
    def forward(
        self, source: Num[Tensor, "B S *F"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; padding must not change any real state.

        Args:
            source: numbers of symbols, or frames of F features each.
            mask: ``True`` at real positions.
        """


class DecoderState(ABC):
    """All that a decoder remembers between two steps, one row per sequence."""

    @abstractmethod
    def reorder(self, rows: Int[Tensor, " R"]) -> "DecoderState":
        """Keep these batch rows, in this order; a row may be repeated."""


class Decoder(nn.Module, ABC):
    """Predicts the next symbol, given the encoded source and the symbols before.

    Attributes:
        encoder_width: D, the encoder width it was built for; ``None`` for any.
    """

    encoder_width: int | None = None

    @abstractmethod
    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state before the first step."""

    @abstractmethod
    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Score every next symbol, given one new symbol per row.

        Returns:
            log-probabilities of the next symbol, and the state after this step. The
            old state stays valid: a search may step from it again.
        """

    @abstractmethod
    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All steps at once, for training: the inputs are known in advance.

        Column t holds the log-probabilities that ``step`` would give after reading
        ``tokens[:, : t + 1]``; later columns of ``tokens`` must not change it.
        """

    def attention(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T S"] | None:
        """The attention weights of each step over the source positions.

        ``None``, unless a decoder that attends overrides it.
        """
        return None


class EncoderDecoder(nn.Module):
    """An encoder and a decoder that fit together.

    Args:
        encoder: reads the source.
        decoder: writes the target.
        config: what rebuilds this model, if it is to be saved.

    Raises:
        ValueError: the decoder was built for an encoder of another width.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        *,
        config: "ModelConfig | None" = None,
    ) -> None:
        super().__init__()
        if decoder.encoder_width not in (None, encoder.width):
            raise ValueError(
                f"the encoder has width {encoder.width}, but the decoder was "
                f"built for {decoder.encoder_width}: give both the same."
            )
        self.encoder = encoder
        self.decoder = decoder
        self.config = config

    @property
    def device(self) -> torch.device:
        """Where the weights are; batches must be there too."""
        tensors = (*self.parameters(), *self.buffers(), torch.empty(0))
        return tensors[0].device

    def encode(self, batch: Batch) -> EncoderOutput:
        """What the encoder makes of a batch's sources."""
        encoded: EncoderOutput = self.encoder(batch.source, batch.source_mask)
        return encoded

    def forward(self, batch: Batch) -> Float[Tensor, "B T V"]:
        """Log-probabilities of every next symbol, given the right ones before."""
        log_probabilities: Tensor = self.decoder(
            self.encode(batch), batch.decoder_input
        )
        return log_probabilities


def check_mask(mask: Tensor, *, queries: int, keys: int) -> None:
    """Refuse a mask of the wrong kind or shape, without reading its values.

    Raises:
        ValueError: the mask is not boolean, or its last two axes are not queries (or 1)
            and keys.
    """
    if mask.dtype is not torch.bool:
        raise ValueError(
            f"mask has the type {mask.dtype}: expected torch.bool, True = may look. "
            "Masks of nn.MultiheadAttention mean the opposite: give ~mask."
        )
    if mask.dim() < 2 or mask.shape[-1] != keys or mask.shape[-2] not in (1, queries):
        raise ValueError(
            f"mask has the shape {tuple(mask.shape)}: its last two axes should be "
            f"queries and keys, ({queries}, {keys}) or (1, {keys})."
        )


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Turn dropout and gradients off inside, and put every part's mode back."""
    training = [part for part in module.modules() if part.training]
    for part in training:  # eval() would write to every part, most often for nothing
        part.training = False
    try:
        # not inference_mode: what is computed here may be trained on later
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


@dataclass(frozen=True, kw_only=True)
class ModelConfig(ABC):
    """What rebuilds a model: its sizes and choices, and nothing else.

    Subclasses are frozen dataclasses whose name without ``Config`` names the model
    in files and recipes. One that reads symbols has ``source_symbols`` too, as
    ``SymbolsConfig`` does; one that reads frames has ``source_features``.
    """

    target_symbols: int

    models: ClassVar[dict[str, type["ModelConfig"]]] = {}

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if type(value) is int and value < 1:  # all of them are sizes
                raise ValueError(f"{name}={value}: expected at least 1.")
        dropout = getattr(self, "dropout", 0.0)
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout={dropout}: expected a share from 0 to below 1.")

    def __init_subclass__(cls) -> None:
        if ABC not in cls.__bases__:
            ModelConfig.models[cls.__name__.removesuffix("Config")] = cls

    @abstractmethod
    def build(self) -> EncoderDecoder:
        """A fresh model of these sizes."""

    def to_json(self) -> str:
        """The configuration as JSON text, with the model's name."""
        name = type(self).__name__.removesuffix("Config")
        return json.dumps({"model": name, **dataclasses.asdict(self)})

    @staticmethod
    def from_json(text: str) -> "ModelConfig":
        """Rebuild what ``to_json`` wrote."""
        return ModelConfig.from_mapping(json.loads(text))

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> "ModelConfig":
        """Build a configuration from names and plain values, as a recipe has them.

        Raises:
            ValueError: the model, a key or a choice is unknown, or a key is missing.
        """
        rest = dict(values)
        name = rest.pop("model", None)
        if name not in ModelConfig.models:
            raise ValueError(
                f"unknown model {name!r}: expected one of "
                f"{', '.join(sorted(ModelConfig.models))}."
            )
        return from_mapping(ModelConfig.models[name], rest)


@dataclass(frozen=True, kw_only=True)
class SymbolsConfig(ModelConfig, ABC):
    """What rebuilds a model whose sources are symbols."""

    source_symbols: int
