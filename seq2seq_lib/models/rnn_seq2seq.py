"""Chapter 4: the recurrent decoder that starts from one vector.

Axes: B batch, S source, T target, E input width, D width, M width of the encoder,
V vocabulary, L layers, R rows kept.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    EncoderOutput,
    SymbolsConfig,
)
from seq2seq_lib.models.convolutional import ConvEncoder
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.recurrent import (
    CellKind,
    Pooling,
    RNNEncoder,
    torch_recurrence,
)


@dataclass(frozen=True)
class RNNState(DecoderState):
    """The hidden state, and for an LSTM also its cell."""

    parts: tuple[Float[Tensor, "L B D"], ...]

    def reorder(self, rows: Int[Tensor, " R"]) -> "RNNState":
        """Keep these batch rows, in this order."""
        return RNNState(tuple(part[:, rows] for part in self.parts))


class Bridge(nn.Module):
    """Turns the source's summary into a decoder's first state, by a layer and tanh.

    Args:
        encoder_width: the width of the summary.
        kind: which recurrence.
        layers: L, how many layers it has.
        width: D, the width of its state.
    """

    def __init__(
        self, encoder_width: int, *, kind: CellKind, layers: int, width: int
    ) -> None:
        super().__init__()
        self.shape = (2 if kind is CellKind.LSTM else 1, layers, width)
        self.linear = nn.Linear(encoder_width, math.prod(self.shape))

    def forward(
        self, summary: Float[Tensor, "B M"]
    ) -> tuple[Float[Tensor, "L B D"], ...]:
        """The hidden state, and for an LSTM also its cell."""
        state = self.linear(summary).tanh().view(-1, *self.shape)  # B parts L D
        return tuple(state.permute(1, 2, 0, 3).contiguous().unbind(0))


def advance(
    recurrence: nn.RNNBase,
    inputs: Float[Tensor, "B T E"],
    parts: tuple[Float[Tensor, "L B D"], ...],
) -> tuple[Float[Tensor, "B T D"], tuple[Float[Tensor, "L B D"], ...]]:
    """Run a recurrence from a state, of which PyTorch's LSTM has two parts."""
    hidden, last = recurrence(inputs, parts if len(parts) > 1 else parts[0])
    return hidden, last if isinstance(last, tuple) else (last,)


class RNNDecoder(Decoder):
    """A recurrence whose first state is made from the source's summary.

    That one vector is all it knows of the source.

    Args:
        symbols: V, the size of the target vocabulary.
        width: D, the width of embedding and state.
        encoder_width: M, the width of the summary, if it is not D.
        kind: which recurrence.
        layers: L, how many layers.
        dropout: the share of features dropped before and after the recurrence.
    """

    def __init__(
        self,
        symbols: int,
        width: int,
        *,
        encoder_width: int | None = None,
        kind: CellKind = CellKind.GRU,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder_width = encoder_width or width
        self.embedding = nn.Embedding(symbols, width)
        self.bridge = Bridge(self.encoder_width, kind=kind, layers=layers, width=width)
        self.dropout = Dropout(dropout)
        self.recurrence = torch_recurrence(
            kind,
            inputs=width,
            width=width,
            layers=layers,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.output = nn.Linear(width, symbols)

    def init_state(self, encoded: EncoderOutput) -> RNNState:
        """Turn the summary into the first hidden state."""
        return RNNState(self.bridge(encoded.summary))

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], RNNState]:
        """One step of the recurrence."""
        assert isinstance(state, RNNState)
        log_probabilities, state = self._run(token[:, None], state)
        return log_probabilities[:, 0], state

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All steps in one call of the recurrence."""
        log_probabilities, _ = self._run(tokens, self.init_state(encoded))
        return log_probabilities

    def _run(
        self, tokens: Int[Tensor, "B T"], state: RNNState
    ) -> tuple[Float[Tensor, "B T V"], RNNState]:
        embedded = self.dropout(self.embedding(tokens))  # B T D
        hidden, parts = advance(self.recurrence, embedded, state.parts)
        logits = self.output(self.dropout(hidden))  # B T V
        return logits.log_softmax(dim=-1), RNNState(parts)


class EncoderKind(StrEnum):
    """Which network encodes the source."""

    RECURRENT = "recurrent"
    CONVOLUTIONAL = "convolutional"


@dataclass(frozen=True, kw_only=True)
class RNNSeq2SeqConfig(SymbolsConfig):
    """Sizes and choices of a recurrent encoder–decoder without attention."""

    width: int = 128
    layers: int = 1
    cell: CellKind = CellKind.GRU
    encoder: EncoderKind = EncoderKind.RECURRENT
    bidirectional: bool = True
    pooling: Pooling = Pooling.LAST
    dropout: float = 0.1

    def build(self) -> "Seq2Seq":
        """A fresh model of these sizes."""
        return Seq2Seq(self)

    def build_decoder(self) -> Decoder:
        """A fresh decoder alone."""
        return RNNDecoder(
            self.target_symbols,
            self.width,
            kind=self.cell,
            layers=self.layers,
            dropout=self.dropout,
        )

    def build_encoder(self) -> Encoder:
        """A fresh encoder alone."""
        if self.encoder is EncoderKind.CONVOLUTIONAL:
            return ConvEncoder(
                self.source_symbols,
                self.width,
                layers=self.layers,
                pooling=self.pooling,
                dropout=self.dropout,
            )
        return RNNEncoder(
            self.source_symbols,
            self.width,
            kind=self.cell,
            layers=self.layers,
            bidirectional=self.bidirectional,
            pooling=self.pooling,
            dropout=self.dropout,
        )


class Seq2Seq(EncoderDecoder):
    """An encoder and a recurrent decoder of the same width.

    Sutskever et al. (2014); with ``RNNAttentionConfig`` the decoder attends to the
    source (Bahdanau et al., 2015).

    Args:
        config: the model's sizes and choices.
    """

    def __init__(self, config: RNNSeq2SeqConfig) -> None:
        super().__init__(config.build_encoder(), config.build_decoder(), config=config)
