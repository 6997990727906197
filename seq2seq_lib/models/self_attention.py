"""Chapter 7: an encoder of nothing but self-attention, under chapter 6's decoder.

It does not know the order: a word and its letters shuffled give the same states.
Chapter 9 adds positions.

Axes: B batch, S source, D width.
"""

from dataclasses import dataclass

from jaxtyping import Bool, Int
from torch import Tensor, nn

from seq2seq_lib.interface import Encoder, EncoderDecoder, EncoderOutput, SymbolsConfig
from seq2seq_lib.models.attention import ScoreKind
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.rnn_attention import AttentionDecoder


class SelfAttentionEncoder(Encoder):
    """Embeds the source and adds to each symbol what it attends to in the others.

    Each layer computes x + attention(x, x); normalization, positions and feed-forward
    networks come in later chapters.

    Args:
        symbols: the size of the source vocabulary.
        width: D.
        heads: a divisor of the width.
        layers: how many layers of attention.
        dropout: the share of features dropped after the embedding and each layer.
    """

    def __init__(
        self,
        symbols: int,
        width: int,
        *,
        heads: int = 4,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(symbols, width)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            MultiHeadAttention(width, heads) for _ in range(layers)
        )

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; the summary is the mean of its states."""
        x = self.dropout(self.embedding(source))  # B S D
        for layer in self.layers:
            mixed, _ = layer(x, x, mask[:, None])
            x = x + self.dropout(mixed)
        return EncoderOutput.averaged(x, mask)


@dataclass(frozen=True, kw_only=True)
class SelfAttentionConfig(SymbolsConfig):
    """Sizes of a self-attention encoder under a recurrent decoder that attends."""

    width: int = 128
    heads: int = 4
    layers: int = 1
    scores: ScoreKind = ScoreKind.ADDITIVE
    dropout: float = 0.1

    def build(self) -> EncoderDecoder:
        """A fresh model of these sizes."""
        encoder = SelfAttentionEncoder(
            self.source_symbols,
            self.width,
            heads=self.heads,
            layers=self.layers,
            dropout=self.dropout,
        )
        decoder = AttentionDecoder(
            self.target_symbols,
            self.width,
            scores=self.scores,
            dropout=self.dropout,
        )
        return EncoderDecoder(encoder, decoder, config=self)
