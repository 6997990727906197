"""Chapter 10: the parts that a Transformer is assembled from.

Axes: B batch, S source, T target, D width, H heads, K width of one head, M width of
the memory, R rows that are decoded, U = T + 1 with the new one.
"""

import math

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.linear import Linear
from seq2seq_lib.models.multi_head import (
    CrossAttention,
    FoldedSource,
    KeyValue,
    SelfAttention,
)
from seq2seq_lib.models.normalization import Normalization, NormKind, NormOrder
from seq2seq_lib.models.positional import Positions


class Embedding(nn.Module):
    """Embeds symbols, times √D, and adds their positions.

    Args:
        symbols: the size of the vocabulary.
        positions: what tells the positions apart.
        width: D.
        dropout: the share of features dropped from the sum.
    """

    def __init__(
        self, symbols: int, positions: Positions, *, width: int, dropout: float = 0.0
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
        embedded = self.embedding.forward(tokens) * self.scale
        return self.dropout.forward(self.positions.forward(embedded, start=start))


class FeedForward(nn.Sequential):
    """Two layers on every position alone: max(0, x W₁ + b₁) W₂ + b₂.

    Args:
        width: D.
        hidden: the width between the layers.
        dropout: the share of hidden features dropped.
    """

    def __init__(self, width: int, hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__(
            Linear(width, hidden),
            nn.ReLU(),
            Dropout(dropout),
            Linear(hidden, width),
        )

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """The four in turn; what is negative is overwritten where it stands."""
        first, _, dropout, second = self
        said: Tensor = second.forward(dropout.forward(first.forward(x).relu_()))
        return said


class Residual(nn.Module):
    """Adds what a sublayer says to what it heard, and normalizes before or after.

    Pre-norm: x + f(norm(x)). Post-norm: norm(x + f(x)). What f says may be dropped.

    Args:
        width: D.
        norm: which normalization.
        order: before or after.
        dropout: the share of features dropped from what f says.
    """

    def __init__(
        self, width: int, *, norm: NormKind, order: NormOrder, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.order = order
        self.norm = Normalization(norm, width)
        self.dropout = Dropout(dropout)

    def before(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None = None
    ) -> Float[Tensor, "*B D"]:
        """What the sublayer hears."""
        return self.norm.forward(x, mask) if self.order is NormOrder.PRE else x

    def after(
        self,
        x: Float[Tensor, "*B D"],
        said: Float[Tensor, "*B D"],
        mask: Bool[Tensor, "*B"] | None = None,
    ) -> Float[Tensor, "*B D"]:
        """What goes on to the next sublayer."""
        total = self.dropout.add(x, said)
        return self.norm.forward(total, mask) if self.order is NormOrder.POST else total


class EncoderBlock(nn.Module):
    """Self-attention, then the feed-forward network, each with its residual.

    Args:
        attention: looks at the other positions.
        feed_forward: works on each position alone.
        residuals: one for each of the two.
    """

    def __init__(
        self,
        attention: SelfAttention,
        feed_forward: FeedForward,
        residuals: tuple[Residual, Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.attention_residual, self.feed_forward_residual = residuals

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "B S"],
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B H S S"] | None]:
        """The block's output, and its attention weights if asked for."""
        heard = self.attention_residual.before(x, mask)
        said, looked = self.attention(heard, mask[:, None], weights=weights)
        x = self.attention_residual.after(x, said, mask)
        said = self.feed_forward(self.feed_forward_residual.before(x, mask))
        return self.feed_forward_residual.after(x, said, mask), looked


class DecoderBlock(nn.Module):
    """Causal self-attention, attention to the source, feed-forward network.

    Args:
        attention: looks at what was said so far.
        cross: looks at the source.
        feed_forward: works on each position alone.
        residuals: one for each of the three.
    """

    def __init__(
        self,
        attention: SelfAttention,
        cross: CrossAttention,
        feed_forward: FeedForward,
        residuals: tuple[Residual, Residual, Residual],
    ) -> None:
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.attention_residual, self.cross_residual, self.feed_forward_residual = (
            residuals
        )

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        real: Bool[Tensor, "B T"] | None,
        memory: KeyValue,
        mask: Bool[Tensor, "B S"],
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """All positions at once; also how they looked at the source, if asked for."""
        heard = self.attention_residual.before(x, real)
        said, _ = self.attention(heard, causal=True)
        x = self.attention_residual.after(x, said, real)
        heard = self.cross_residual.before(x, real)
        said, looked = self.cross(heard, memory, mask[:, None], weights=weights)
        x = self.cross_residual.after(x, said, real)
        said = self.feed_forward(self.feed_forward_residual.before(x, real))
        return self.feed_forward_residual.after(x, said, real), looked

    def step(
        self,
        x: Float[Tensor, "R D"],
        past: Float[Tensor, "T R 2 H K"] | None,
        memory: KeyValue | FoldedSource,
        mask: Bool[Tensor, "B 1 1 S"] | None,
    ) -> tuple[Float[Tensor, "R D"], Float[Tensor, "U R 2 H K"]]:
        """One new position of every row, and the cache with its key and value."""
        said, past = self.attention.step(self.attention_residual.before(x), past)
        x = self.attention_residual.after(x, said)
        said = self.cross.step(self.cross_residual.before(x), memory, mask)
        x = self.cross_residual.after(x, said)
        said = self.feed_forward.forward(self.feed_forward_residual.before(x))
        return self.feed_forward_residual.after(x, said), past
