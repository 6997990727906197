"""Chapter 6: the recurrent decoder that attends to every source position.

Axes: B batch, S source, T target, D width, M width of the encoder, A width of prepared
keys, F = D + M features of the output layer, V vocabulary, L layers, R rows kept.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.interface import Decoder, DecoderState, EncoderOutput
from seq2seq_lib.models.attention import ScoreKind, make_scores
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.recurrent import CellKind, torch_recurrence
from seq2seq_lib.models.rnn_seq2seq import Bridge, RNNSeq2SeqConfig, advance


@dataclass(frozen=True)
class AttentionState(DecoderState):
    """The recurrence's state, with keys, values and mask of the source."""

    parts: tuple[Float[Tensor, "L B D"], ...]
    keys: Float[Tensor, "B S A"]
    values: Float[Tensor, "B S M"]
    mask: Bool[Tensor, "B S"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "AttentionState":
        """Keep these batch rows, in this order."""
        parts = tuple(part[:, rows] for part in self.parts)
        return AttentionState(
            parts, self.keys[rows], self.values[rows], self.mask[rows]
        )


class AttentionDecoder(Decoder):
    """A recurrence that attends to the source at every step (Bahdanau et al., 2015).

    With the state s before the step, weights = softmax(score(s, keys)), the context is
    the weighted average of the encoder's states, and the recurrence reads the last
    symbol together with the context. The output layer reads the new state and the
    context; the paper adds the last symbol there and a maxout layer, which we leave
    out.

    Args:
        symbols: V, the size of the target vocabulary.
        width: D, the width of embedding and state.
        encoder_width: M, the width of the encoder's states, if it is not D.
        scores: how the state is compared with the encoder's states.
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
        scores: ScoreKind = ScoreKind.ADDITIVE,
        kind: CellKind = CellKind.GRU,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.encoder_width = encoder_width = encoder_width or width
        self.embedding = nn.Embedding(symbols, width)
        self.bridge = Bridge(encoder_width, kind=kind, layers=layers, width=width)
        self.scores = make_scores(scores, query_width=width, key_width=encoder_width)
        self.dropout = Dropout(dropout)
        self.recurrence = torch_recurrence(
            kind,
            inputs=width + encoder_width,
            width=width,
            layers=layers,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.output = nn.Linear(width + encoder_width, symbols)

    def init_state(self, encoded: EncoderOutput) -> AttentionState:
        """Start from the summary, and prepare the keys once for all steps."""
        return AttentionState(
            self.bridge(encoded.summary),
            self.scores.prepare(encoded.states),
            encoded.states,
            encoded.mask,
        )

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], AttentionState]:
        """Attend, read the last symbol, and score the next."""
        assert isinstance(state, AttentionState)
        embedded = self.dropout(self.embedding(token))
        features, _, state = self._attend_and_advance(embedded, state)
        return self._score(features), state

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Step by step, since the weights depend on the state before."""
        features, _ = self._unroll(encoded, tokens)
        return self._score(features)

    def attention(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T S"]:
        """The attention weights of every step."""
        _, weights = self._unroll(encoded, tokens)
        return weights

    def _unroll(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> tuple[Float[Tensor, "B T F"], Float[Tensor, "B T S"]]:
        state = self.init_state(encoded)
        steps = []
        for embedded in self.dropout(self.embedding(tokens)).unbind(1):
            features, weights, state = self._attend_and_advance(embedded, state)
            steps.append((features, weights))
        features, weights = (
            torch.stack(parts, dim=1) for parts in zip(*steps, strict=True)
        )
        return features, weights

    def _score(self, features: Float[Tensor, "*B F"]) -> Float[Tensor, "*B V"]:
        logits: Tensor = self.output(self.dropout(features))
        return logits.log_softmax(dim=-1)

    def _attend_and_advance(
        self, embedded: Float[Tensor, "B D"], state: AttentionState
    ) -> tuple[Float[Tensor, "B F"], Float[Tensor, "B S"], AttentionState]:
        query = state.parts[0][-1][:, None]  # B 1 D, the top layer
        scores = self.scores.compare(query, state.keys)[:, 0]  # B S
        # every row has real keys; a check would stall a GPU
        weights = scores.masked_fill(~state.mask, -torch.inf).softmax(dim=-1)
        context = (weights[:, None] @ state.values)[:, 0]  # B M
        inputs = torch.cat([embedded, context], dim=-1)[:, None]
        hidden, parts = advance(self.recurrence, inputs, state.parts)
        features = torch.cat([hidden[:, 0], context], dim=-1)
        state = AttentionState(parts, state.keys, state.values, state.mask)
        return features, weights, state


@dataclass(frozen=True, kw_only=True)
class RNNAttentionConfig(RNNSeq2SeqConfig):
    """Sizes and choices of a recurrent encoder–decoder with attention."""

    scores: ScoreKind = ScoreKind.ADDITIVE

    def build_decoder(self) -> Decoder:
        """A fresh decoder alone."""
        return AttentionDecoder(
            self.target_symbols,
            self.width,
            scores=self.scores,
            kind=self.cell,
            layers=self.layers,
            dropout=self.dropout,
        )
