"""Chapter 10: the blocks that a Transformer is stacked from.

Axes: B batch, S source, T target, D width, H heads, M width of the encoder.
"""

import math

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.fast import Linear
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import NormKind, NormOrder, Residual
from seq2seq_lib.models.positional import Rotary


class Embedding(nn.Module):
    """Embeds symbols, times √D, and adds their positions.

    Args:
        symbols: the size of the vocabulary.
        width: D.
        positions: adds to each embedding what tells its position.
        dropout: the share of features dropped from the sum.
    """

    def __init__(
        self, symbols: int, width: int, positions: nn.Module, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.scale = math.sqrt(width)
        self.embedding = nn.Embedding(symbols, width)
        # times √D this has variance 1, on a par with the positions
        nn.init.normal_(self.embedding.weight, std=1 / self.scale)
        self.positions = positions
        self.dropout = Dropout(dropout)

    def forward(
        self, tokens: Int[Tensor, "B T"], *, start: int = 0
    ) -> Float[Tensor, "B T D"]:
        """Embed the symbols of the positions from ``start`` on."""
        embedded = self.embedding(tokens) * self.scale
        x: Tensor = self.positions(embedded, start=start)
        return self.dropout(x) if self.training else x


class FeedForward(nn.Module):
    """Two layers on every position alone: max(0, x W₁ + b₁) W₂ + b₂.

    Args:
        width: D.
        hidden: the width between the layers.
        dropout: the share of hidden features dropped.
    """

    def __init__(self, width: int, hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = Linear(width, hidden)
        self.dropout = Dropout(dropout)
        self.second = Linear(hidden, width)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Both layers; ReLU is applied in place."""
        hidden = self.first(x).relu_()
        output: Tensor = self.second(self.dropout(hidden) if self.training else hidden)
        return output


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network, each with its residual.

    Args:
        width: D.
        heads: H, a divisor of the width.
        hidden: the width inside the feed-forward network.
        order: normalize before each sublayer or after its residual.
        norm: which normalization.
        dropout: the share of features dropped from what each sublayer adds.
        inner_dropout: of attention weights, and inside the feed-forward network.
        rotary: rotates queries and keys by their position.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        *,
        order: NormOrder = NormOrder.PRE,
        norm: NormKind = NormKind.LAYER,
        dropout: float = 0.0,
        inner_dropout: float = 0.0,
        rotary: Rotary | None = None,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            width, heads, dropout=inner_dropout, rotary=rotary
        )
        self.feed_forward = FeedForward(width, hidden, dropout=inner_dropout)
        self.attention_residual, self.feed_forward_residual = (
            Residual(width, order=order, norm=norm, dropout=dropout) for _ in range(2)
        )

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B S"],
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B H S S"] | None]:
        """The block's output, and its attention weights if asked for.

        Args:
            x: the source so far.
            mask: ``True`` at real positions.
            weights: also return the attention weights.
        """
        found = None

        def attend(x: Tensor) -> Tensor:
            nonlocal found
            mixed: Tensor
            mixed, found = self.attention(x, x, mask[:, None], weights=weights)
            return mixed

        x = self.attention_residual(x, attend, mask)
        x = self.feed_forward_residual(x, self.feed_forward, mask)
        return x, found


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the source, feed-forward network.

    Args:
        width: D.
        heads: H, a divisor of the width.
        hidden: the width inside the feed-forward network.
        encoder_width: M, if the encoder's width is not the decoder's.
        order: normalize before each sublayer or after its residual.
        norm: which normalization.
        dropout: the share of features dropped from what each sublayer adds.
        inner_dropout: of attention weights, and inside the feed-forward network.
        rotary: rotates queries and keys of self-attention by their position.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        hidden: int,
        *,
        encoder_width: int | None = None,
        order: NormOrder = NormOrder.PRE,
        norm: NormKind = NormKind.LAYER,
        dropout: float = 0.0,
        inner_dropout: float = 0.0,
        rotary: Rotary | None = None,
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(
            width, heads, dropout=inner_dropout, rotary=rotary
        )
        self.cross = MultiHeadAttention(
            width, heads, source_width=encoder_width, dropout=inner_dropout
        )
        self.feed_forward = FeedForward(width, hidden, dropout=inner_dropout)
        self.attention_residual, self.cross_residual, self.feed_forward_residual = (
            Residual(width, order=order, norm=norm, dropout=dropout) for _ in range(3)
        )

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        source: Float[Tensor, "B S M"],
        source_mask: Bool[Tensor, "B S"],
        mask: Bool[Tensor, "B T"] | None = None,
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """The block's output, and the weights of cross-attention if asked for.

        Args:
            x: the target so far.
            source: the encoder's states.
            source_mask: ``True`` at real source positions.
            mask: ``True`` at real target positions, which only batch norm needs:
                causality hides padding from them anyway.
            weights: also return how every head attends to the source.
        """
        found = None

        def attend(x: Tensor) -> Tensor:
            mixed: Tensor = self.attention(x, x, causal=True)[0]
            return mixed

        def attend_to_source(x: Tensor) -> Tensor:
            nonlocal found
            mixed: Tensor
            mixed, found = self.cross(x, source, source_mask[:, None], weights=weights)
            return mixed

        x = self.attention_residual(x, attend, mask)
        x = self.cross_residual(x, attend_to_source, mask)
        x = self.feed_forward_residual(x, self.feed_forward, mask)
        return x, found
