"""Chapter 4: the recurrent decoder, started from one vector.

Axes: B batch, S source, T target, D width, V vocabulary, L layers, R rows kept.
"""

from dataclasses import dataclass
from enum import StrEnum

from jaxtyping import Float, Int
from torch import Tensor, nn

from seq2seq_lib.convolutional import ConvolutionalEncoder
from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    Memory,
    ModelConfig,
)
from seq2seq_lib.recurrent import (
    CellKind,
    RecurrentEncoder,
    Summary,
    torch_recurrence,
)


@dataclass(frozen=True)
class RNNState(DecoderState):
    """The hidden state, and for an LSTM also its cell."""

    parts: tuple[Float[Tensor, "L B D"], ...]

    def reorder(self, rows: Int[Tensor, " R"]) -> "RNNState":
        """Keep these batch rows, in this order."""
        return RNNState(tuple(part[:, rows] for part in self.parts))


class RNNDecoder(Decoder):
    """A recurrence whose first state is made from the source's summary.

    All it ever learns about the source is that one vector.

    Args:
        symbols: V, the size of the target vocabulary.
        memory_width: the width of the memory's summary.
        width: D, the width of embedding and state.
        kind: which recurrence.
        layers: L, how many layers.
        dropout: the share of features dropped before and after the recurrence.
    """

    def __init__(
        self,
        symbols: int,
        *,
        memory_width: int,
        width: int,
        kind: CellKind = CellKind.GRU,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.state_shape = (2 if kind is CellKind.LSTM else 1, layers, width)
        self.embedding = nn.Embedding(symbols, width)
        self.bridge = nn.Linear(memory_width, self.state_shape[0] * layers * width)
        self.dropout = nn.Dropout(dropout)
        self.recurrence = torch_recurrence(
            kind,
            inputs=width,
            width=width,
            layers=layers,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.output = nn.Linear(width, symbols)

    def init_state(self, memory: Memory) -> RNNState:
        """Turn the summary into the first hidden state."""
        bridged = self.bridge(memory.summary).tanh()
        parts, layers, width = self.state_shape
        state = bridged.view(-1, parts, layers, width).permute(1, 2, 0, 3).contiguous()
        return RNNState(state.unbind(0))

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], RNNState]:
        """One step of the recurrence."""
        assert isinstance(state, RNNState)
        log_probabilities, state = self._run(token[:, None], state)
        return log_probabilities[:, 0], state

    def forward(
        self, memory: Memory, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All steps in one call of the recurrence."""
        log_probabilities, _ = self._run(tokens, self.init_state(memory))
        return log_probabilities

    def _run(
        self, tokens: Int[Tensor, "B T"], state: RNNState
    ) -> tuple[Float[Tensor, "B T V"], RNNState]:
        embedded = self.dropout(self.embedding(tokens))  # B T D
        # PyTorch's LSTM takes and gives a pair, the others one tensor
        lstm = self.kind is CellKind.LSTM
        hidden, last = self.recurrence(
            embedded, state.parts if lstm else state.parts[0]
        )
        scores = self.output(self.dropout(hidden))  # B T V
        return scores.log_softmax(dim=-1), RNNState(last if lstm else (last,))


class EncoderKind(StrEnum):
    """What reads the source."""

    RECURRENT = "recurrent"
    CONVOLUTIONAL = "convolutional"


@dataclass(frozen=True, kw_only=True)
class RNNSeq2SeqConfig(ModelConfig):
    """Sizes and choices of a recurrent encoder–decoder without attention."""

    width: int = 128
    layers: int = 1
    cell: CellKind = CellKind.GRU
    encoder: EncoderKind = EncoderKind.RECURRENT
    bidirectional: bool = True
    summary: Summary = Summary.LAST
    dropout: float = 0.1

    def build(self) -> EncoderDecoder:
        """A fresh model of these sizes."""
        return EncoderDecoder(
            self._encoder(),
            RNNDecoder(
                self.target_symbols,
                memory_width=self.width,
                width=self.width,
                kind=self.cell,
                layers=self.layers,
                dropout=self.dropout,
            ),
            config=self,
        )

    def _encoder(self) -> Encoder:
        if self.encoder is EncoderKind.CONVOLUTIONAL:
            return ConvolutionalEncoder(
                self.source_symbols,
                width=self.width,
                layers=self.layers,
                summary=self.summary,
                dropout=self.dropout,
            )
        return RecurrentEncoder(
            self.source_symbols,
            width=self.width,
            kind=self.cell,
            layers=self.layers,
            bidirectional=self.bidirectional,
            summary=self.summary,
            dropout=self.dropout,
        )
