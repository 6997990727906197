"""Several models that answer as one.

Axes: B batch, S source, T target, V vocabulary, R rows kept.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    EncoderOutput,
)
from seq2seq_lib.models.saved import SavedModel


def ensemble(models: Sequence[SavedModel]) -> SavedModel:
    """One model whose probabilities are the mean of several models'.

    p(y_t | …) = 1/M Σ_m p_m(y_t | …)

    Args:
        models: of any kind, trained on the same split with the same vocabularies.

    Raises:
        ValueError: there are none, or their splits or vocabularies differ.
    """
    if not models:
        raise ValueError("no models for an ensemble: expected at least one.")
    first, *others = models
    for number, saved in enumerate(others, start=2):
        for what in ("split", "source_vocabulary", "target_vocabulary"):
            if getattr(saved, what) != getattr(first, what):
                raise ValueError(
                    f"model {number} of the ensemble has another {what} than the "
                    "first: give models that were trained on the same split."
                )
    together = EncoderDecoder(
        _Encoders([saved.model.encoder for saved in models]),
        _Decoders([saved.model.decoder for saved in models]),
    )
    return SavedModel(
        together,
        first.source_vocabulary,
        first.target_vocabulary,
        first.split,
        task=first.task,
    )


@dataclass(frozen=True)
class _EncoderOutputs(EncoderOutput):
    """The outputs of every encoder; as an encoder output, it is the first one's."""

    parts: tuple[EncoderOutput, ...]

    def reorder(self, rows: Int[Tensor, " R"]) -> "_EncoderOutputs":
        return _joined(tuple(part.reorder(rows) for part in self.parts))


def _joined(parts: tuple[EncoderOutput, ...]) -> _EncoderOutputs:
    return _EncoderOutputs(parts[0].states, parts[0].mask, parts[0].summary, parts)


@dataclass(frozen=True)
class _States(DecoderState):
    parts: tuple[DecoderState, ...]

    def reorder(self, rows: Int[Tensor, " R"]) -> "_States":
        return _States(tuple(part.reorder(rows) for part in self.parts))


class _Encoders(Encoder):
    def __init__(self, encoders: Sequence[Encoder]) -> None:
        super().__init__()
        self.encoders = nn.ModuleList(encoders)
        self.width = encoders[0].width

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> _EncoderOutputs:
        return _joined(tuple(encoder(source, mask) for encoder in self.encoders))


class _Decoders(Decoder):
    def __init__(self, decoders: Sequence[Decoder]) -> None:
        super().__init__()
        self.decoders: Iterable[Decoder] = nn.ModuleList(decoders)  # type: ignore[assignment]

    def init_state(self, encoded: EncoderOutput) -> _States:
        assert isinstance(encoded, _EncoderOutputs)
        pairs = zip(self.decoders, encoded.parts, strict=True)
        return _States(tuple(decoder.init_state(part) for decoder, part in pairs))

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], _States]:
        assert isinstance(state, _States)
        pairs = zip(self.decoders, state.parts, strict=True)
        steps = [decoder.step(token, part) for decoder, part in pairs]
        return _mean([log_probabilities for log_probabilities, _ in steps]), _States(
            tuple(after for _, after in steps)
        )

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        assert isinstance(encoded, _EncoderOutputs)
        pairs = zip(self.decoders, encoded.parts, strict=True)
        return _mean([decoder(part, tokens) for decoder, part in pairs])


def _mean(log_probabilities: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of probabilities that are given as logarithms."""
    stacked = torch.stack(list(log_probabilities))
    return stacked.logsumexp(dim=0) - math.log(len(stacked))
