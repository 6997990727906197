"""Chapter 7: self-attention with one head, and attention with many.

Axes: B batch, T queries, S keys, D width, H heads, K = D / H width of one head, M width
of the source.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2seq_lib.interface import check_mask
from seq2seq_lib.models.attention import dot_product_attention, masked_softmax
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.fast import Linear, can_fuse, fused_attention


class SelfAttention(nn.Module):
    """Every position looks at every other: softmax(Q Kᵀ / √D) V, with one head.

    Q = x W_Q, K = x W_K and V = x W_V are three projections of the same sequence.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)

    def forward(
        self, x: Float[Tensor, "B T D"], mask: Bool[Tensor, "#B #T T"]
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T T"]]:
        """The mixed values of every position, and the attention weights.

        Args:
            x: the sequence.
            mask: ``True`` where a position may look.
        """
        query, key, value = self.query(x), self.key(x), self.value(x)  # B T D
        return dot_product_attention(query, key, value, mask)


def split_heads(x: Float[Tensor, "B T D"], heads: int) -> Float[Tensor, "B H T K"]:
    """Cut the features into slices, one for each head."""
    batch, length, width = x.shape
    return x.view(batch, length, heads, width // heads).transpose(1, 2)


def merge_heads(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """Put the heads' slices side by side again."""
    return x.transpose(1, 2).flatten(2)


def causal_mask(length: int, device: torch.device | None = None) -> Bool[Tensor, "T T"]:
    """Position t may look at 0 … t and at nothing later.

    >>> causal_mask(3)
    tensor([[ True, False, False],
            [ True,  True, False],
            [ True,  True,  True]])
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class MultiHeadAttention(nn.Module):
    """Several heads attend at once, each with its own slice of the features.

    head_h = softmax(Q_h K_hᵀ / √K) V_h, where Q comes from x, K and V come from the
    source; the output layer mixes the heads. Self-attention gives the same sequence
    twice, ``attention(x, x, mask)``; cross-attention gives another one as the source.

    Args:
        width: D.
        heads: H, a divisor of the width.
        source_width: M, of the source, if it is not D.
        dropout: the share of attention weights dropped in training.
        rotary: rotates queries and keys by their position, see chapter 9.

    Raises:
        ValueError: the heads do not divide the width.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        source_width: int | None = None,
        dropout: float = 0.0,
        rotary: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(
                f"width={width} does not split into heads={heads}: pick a divisor of "
                f"{width}."
            )
        self.heads = heads
        self.query = Linear(width, width)
        self.key = Linear(source_width or width, width)
        self.value = Linear(source_width or width, width)
        self.output = Linear(width, width)
        self.dropout = Dropout(dropout)
        self.rotary = rotary

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        source: Float[Tensor, "B S M"],
        mask: Bool[Tensor, "#B #T S"] | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """Let every position of x attend to the source.

        Args:
            x: where queries come from.
            source: where keys and values come from.
            mask: ``True`` where a query may look; ``None`` for everywhere.
            causal: position t may only look at 0 … t.
            weights: also return the attention weights of every head.

        Returns:
            the mixed values of every position, and the weights if asked for.

        Raises:
            ValueError: the mask is not boolean or does not fit.
        """
        query = split_heads(self.query(x), self.heads)  # B H T K
        key = split_heads(self.key(source), self.heads)  # B H S K
        value = split_heads(self.value(source), self.heads)  # B H S K
        if self.rotary is not None:
            query, key = self.rotary(query), self.rotary(key)
        dropout = self.dropout.p if self.training else 0.0
        # without storing the weights of all pairs
        fused = not weights and can_fuse(query, key, dropout)
        if mask is not None:
            _check(mask, query, key)
        if causal and (mask is not None or not fused):
            allowed = causal_mask(query.shape[2], x.device)[None]
            mask, causal = allowed if mask is None else allowed & mask, False

        if fused:
            mixed = fused_attention(
                query, key, value, mask, causal=causal, dropout=dropout
            )
            return self.output(merge_heads(mixed)), None
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # B H T S
        shares = (
            scores.softmax(-1)
            if mask is None
            else masked_softmax(scores, mask[:, None])
        )
        mixed = self.dropout(shares) @ value  # B H T K
        return self.output(merge_heads(mixed)), shares if weights else None


def _check(
    mask: Bool[Tensor, "#B #T S"],
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
) -> None:
    check_mask(mask, queries=query.shape[2], keys=key.shape[2])
    if mask.dim() != 3 or len(mask) not in (1, len(query)):
        raise ValueError(
            f"mask has the shape {tuple(mask.shape)}: expected three axes, the batch "
            f"({len(query)} or 1), queries and keys. Give mask[None] if it is the same "
            "for every row."
        )
