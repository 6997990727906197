"""Chapter 7: self-attention and many heads, in two forms held equal by tests.

The readable form is what the chapter shows, and the one that can return its weights.
The fused form is what training uses.

Axes: B batch, T queries, S keys, D width, H heads, K = D / H width of one head, M width
of the memory, R rows that are decoded, W of them for each source, U = T + 1 with
the new one.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.models.attention import check_mask, dot_product_weights
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.linear import Linear

FEW_KEYS = 256
"""Up to so many, plain products are faster than PyTorch's kernel in bfloat16."""


class KeyValue(NamedTuple):
    """What queries look at, one slice per head."""

    key: Float[Tensor, "B H S K"]
    value: Float[Tensor, "B H S K"]


class FoldedSource(NamedTuple):
    """A single source with the projections of its queries and outputs multiplied in.

    Every head scores the source's positions by (x W + b) kᵀ / √K = x (W kᵀ / √K) + …,
    and what it sees goes through the output layer: both products with the source are
    the same at every step. For a short source they are smaller than the projections.

    Attributes:
        key: W kᵀ / √K of every head, side by side.
        offset: what the bias adds to the scores; −∞ where there is padding.
        value: every head's values after its part of the output layer.
    """

    key: Float[Tensor, "D HS"]
    offset: Float[Tensor, " HS"]
    value: Float[Tensor, "HS D"]


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


class MultiHead(nn.Module):
    """What self- and cross-attention share: heads that look, and one output layer.

    Args:
        width: D.
        heads: H, a divisor of the width.
        dropout: the share of weights dropped in training.

    Raises:
        ValueError: the heads do not divide the width.
    """

    def __init__(self, width: int, heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(
                f"width={width} does not split into heads={heads}: pick a divisor of "
                f"{width}."
            )
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.output = Linear(width, width)

    def look(
        self,
        query: Float[Tensor, "B H T K"],
        memory: KeyValue,
        mask: Bool[Tensor, "#B #T S"] | None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """Let every head look, and mix what they bring.

        Args:
            query: what each head looks for.
            memory: what there is to see.
            mask: ``True`` where a query may look; ``None`` for everywhere.
            causal: position t may only look at 0 … t.
            weights: also return how strongly each head looked where.

        Raises:
            ValueError: the mask is not boolean or does not fit.
        """
        if mask is not None:
            check_mask(mask, queries=query.shape[2], keys=memory.key.shape[2])
            if mask.dim() != 3 or len(mask) not in (1, len(query)):
                raise ValueError(
                    f"mask has the shape {tuple(mask.shape)}: expected three axes, the "
                    f"batch ({len(query)} or 1), queries and keys. Give mask[None] if "
                    "it is the same for every row."
                )
        drops = self.training and self.dropout.share > 0
        # PyTorch's kernel for CPUs cannot drop weights, and is slow in few bits
        few = query.dtype is torch.bfloat16 and memory.key.shape[2] <= FEW_KEYS
        readably = weights or (query.device.type == "cpu" and (drops or few))
        if causal and (readably or mask is not None):
            allowed = causal_mask(query.shape[2], query.device)[None]
            mask, causal = allowed if mask is None else allowed & mask, False
        if readably:
            seen, looked = self._look_readably(query, memory, mask)
            return self.output(merge_heads(seen)), looked if weights else None
        seen = F.scaled_dot_product_attention(
            query,
            *memory,
            attn_mask=None if mask is None else mask[:, None],
            is_causal=causal,
            dropout_p=self.dropout.share if drops else 0.0,
        )
        return self.output(merge_heads(seen)), None

    def _look_readably(
        self,
        query: Float[Tensor, "B H T K"],
        memory: KeyValue,
        mask: Bool[Tensor, "#B #T S"] | None,
    ) -> tuple[Float[Tensor, "B H T K"], Float[Tensor, "B H T S"]]:
        if mask is None:
            mask = query.new_ones(1, 1, memory.key.shape[2], dtype=torch.bool)
        weights = dot_product_weights(query, memory.key, mask[:, None])
        return self.dropout(weights) @ memory.value, weights

    def look_once(
        self,
        query: Float[Tensor, "B H W K"],
        memory: KeyValue,
        mask: Bool[Tensor, "B 1 1 S"] | None,
    ) -> Float[Tensor, "R D"]:
        """Let one position of each row look, the W rows of a source together.

        The same as ``look``, without what a single position need not pay for. Here and
        in the steps that call it, ``forward`` is used where a module would be called:
        looking for hooks takes as long as the work on one row.
        """
        if self.training and self.dropout.share:
            seen, _ = self._look_readably(
                query, memory, None if mask is None else mask[:, 0]
            )
        else:
            seen = F.scaled_dot_product_attention(query, *memory, attn_mask=mask)
        batch, heads, rows, width = seen.shape
        merged = seen.transpose(1, 2).reshape(batch * rows, heads * width)
        return self.output.forward(merged)


class SelfAttention(MultiHead):
    """Queries, keys and values from the same sequence, by one projection.

    Args:
        width: D.
        heads: H, a divisor of the width.
        dropout: the share of weights dropped in training.
        turn: changes queries and keys by their position, as rotary positions do.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        dropout: float = 0.0,
        turn: nn.Module | None = None,
    ) -> None:
        super().__init__(width, heads, dropout=dropout)
        self.project = Linear(width, 3 * width)
        self.turn = turn

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        mask: Bool[Tensor, "#B #T T"] | None = None,
        *,
        causal: bool = False,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T T"] | None]:
        """Let every position look at all positions that the mask allows.

        Returns:
            what each position saw, and the weights if asked for.
        """
        query, memory = self._project(x)
        return self.look(query, memory, mask, causal=causal, weights=weights)

    def step(
        self, x: Float[Tensor, "R D"], past: Float[Tensor, "T R 2 H K"] | None
    ) -> tuple[Float[Tensor, "R D"], Float[Tensor, "U R 2 H K"]]:
        """One new position looks at itself and at all before it, which are cached.

        Args:
            x: the new position of every row.
            past: keys and values so far, oldest first, so that a new one is appended
                without moving the others; ``None`` before the first step.

        Returns:
            what it saw, and the cache with its key and value added.
        """
        rows, width = x.shape
        new = self.project.forward(x).view(1, rows, 3, self.heads, width // self.heads)
        query = new[0, :, 0, :, None]  # R H 1 K
        new = new[:, :, 1:]  # 1 R 2 H K
        if self.turn is not None:
            start = 0 if past is None else len(past)
            query = self.turn(query, start=start)
            key = self.turn(new[0, :, 0, :, None], start=start)[None, :, :, 0]
            new = torch.stack([key, new[:, :, 1]], dim=2)
        cache = new if past is None else torch.cat([past, new])
        memory = KeyValue(*cache.permute(2, 1, 3, 0, 4).unbind(0))  # each R H T K
        return self.look_once(query, memory, None), cache

    def _project(
        self, x: Float[Tensor, "B T D"]
    ) -> tuple[Float[Tensor, "B H T K"], KeyValue]:
        query, key, value = (
            split_heads(part, self.heads) for part in self.project(x).chunk(3, dim=-1)
        )
        if self.turn is not None:
            query, key = self.turn(query), self.turn(key)
        return query, KeyValue(key, value)


class CrossAttention(MultiHead):
    """Queries from the decoder, keys and values from the encoder's memory.

    Args:
        width: D, of the decoder.
        heads: H, a divisor of the width.
        encoder_width: M, of the memory; it need not equal the decoder's width.
        dropout: the share of weights dropped in training.
    """

    def __init__(
        self, width: int, heads: int, *, encoder_width: int, dropout: float = 0.0
    ) -> None:
        super().__init__(width, heads, dropout=dropout)
        self.query = Linear(width, width)
        self.memory = Linear(encoder_width, 2 * width)

    def prepare(self, states: Float[Tensor, "B S M"]) -> KeyValue:
        """Keys and values of the memory, the same at every step."""
        key, value = self.memory(states).chunk(2, dim=-1)
        return KeyValue(split_heads(key, self.heads), split_heads(value, self.heads))

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        memory: KeyValue,
        mask: Bool[Tensor, "#B #T S"],
        *,
        weights: bool = False,
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B H T S"] | None]:
        """Let every decoder position look at the source.

        Returns:
            what each position saw, and the weights if asked for.
        """
        query = split_heads(self.query(x), self.heads)
        return self.look(query, memory, mask, weights=weights)

    def fold(
        self, memory: KeyValue, mask: Bool[Tensor, "B S"]
    ) -> KeyValue | FoldedSource:
        """Multiply the projections into a single source, if that makes it smaller."""
        width = self.query.in_features
        if len(memory.key) > 1 or self.heads * mask.shape[1] > width:
            return memory
        key, value = memory.key[0].mT / math.sqrt(memory.key.shape[3]), memory.value[0]
        weight = self.query.weight.view(self.heads, -1, width)  # H K D
        bias = self.query.bias.view(self.heads, 1, -1)  # H 1 K
        offset = (bias @ key).masked_fill(~mask, -torch.inf)  # H 1 S
        output = self.output.weight.T.view(self.heads, -1, width)  # H K D
        return FoldedSource(
            (weight.mT @ key).transpose(0, 1).flatten(1),
            offset.flatten(),
            (value @ output).flatten(0, 1),
        )

    def step(
        self,
        x: Float[Tensor, "R D"],
        memory: KeyValue | FoldedSource,
        mask: Bool[Tensor, "B 1 1 S"] | None,
    ) -> Float[Tensor, "R D"]:
        """One position of every row looks at its source, W rows in turn at each.

        Args:
            x: the new position of every row; R = B · W.
            memory: keys and values of B sources.
            mask: ``True`` where a row may look; ``None`` for everywhere.
        """
        if isinstance(memory, FoldedSource):
            scores = torch.addmm(memory.offset, x, memory.key)  # R HS
            weights = scores.view(len(x), self.heads, -1).softmax(dim=-1)
            dropped = self.dropout.forward(weights).view(len(x), -1)
            return torch.addmm(self.output.bias, dropped, memory.value)
        query = self.query.forward(x).view(
            len(memory.key), -1, self.heads, x.shape[1] // self.heads
        )
        return self.look_once(query.transpose(1, 2), memory, mask)
