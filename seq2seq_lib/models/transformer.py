"""Chapters 10 and 11: the Transformer as a whole, and its decoder with a cache.

Each step computes queries, keys and values of one new position only; keys and values of
all positions before it, and of the source, are kept.

Axes: B batch, S source, T target, D width, H heads, K width of one head, V vocabulary,
R rows that are decoded, W of them for each source, U = T + 1 with the new one,
F = 3·D width of all three projections (to query, key and value).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from seq2seq_lib.interface import (
    DecoderState,
    EncoderDecoder,
    EncoderOutput,
    SymbolsConfig,
)
from seq2seq_lib.models.fast import FastStep, fast_step, fold
from seq2seq_lib.models.multi_head import MultiHeadAttention, split_heads
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.transformer_blocks import DecoderBlock
from seq2seq_lib.models.transformer_stacks import (
    TransformerDecoder,
    TransformerEncoder,
    TransformerSizes,
)


class KeyValue(NamedTuple):
    """Keys and values of the source, one slice per head."""

    key: Float[Tensor, "B H S K"]
    value: Float[Tensor, "B H S K"]


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """The key–value caches of every block, and the mask of the sources.

    Rows that continue the same source, as those of a beam do, stand together and share
    its keys and values.

    Attributes:
        caches: keys and values of the target so far; ``None`` before the first step.
        sources: keys and values of the sources.
        mask: ``True`` at real source positions; ``None`` if a search found no padding.
        rows: W, how many rows each source has.
        fast: what a search computes once for all steps; ``None`` outside of one.
    """

    caches: tuple[Float[Tensor, "T R 2 H K"], ...] | None
    sources: tuple[KeyValue, ...]
    mask: Bool[Tensor, "B 1 1 S"] | None
    rows: int = 1
    fast: tuple[FastStep, ...] | None = None

    def reorder(self, rows: Int[Tensor, " R"]) -> "TransformerState":
        """Keep these batch rows, in this order."""
        caches = self.caches and tuple(c.index_select(1, rows) for c in self.caches)
        if rows.is_meta:  # there is nothing to read: every row has its own copy
            return self._keep(caches, rows // self.rows, 1)
        sources = [row // self.rows for row in rows.tolist()]
        kept = list(dict.fromkeys(sources))
        share, rest = divmod(len(sources), max(1, len(kept)))
        if rest or sources != [source for source in kept for _ in range(share)]:
            kept, share = sources, 1  # not in groups: every row has its own copy
        if kept == list(range(len(self.sources[0].key))):
            return TransformerState(caches, self.sources, self.mask, share, self.fast)
        return self._keep(caches, torch.tensor(kept, device=rows.device), share)

    def _keep(
        self,
        caches: tuple[Float[Tensor, "T R 2 H K"], ...] | None,
        kept: Int[Tensor, " B"],
        rows: int,
    ) -> "TransformerState":
        sources = tuple(KeyValue(s.key[kept], s.value[kept]) for s in self.sources)
        mask = None if self.mask is None else self.mask[kept]
        return TransformerState(caches, sources, mask, rows, self.fast)


class CachedDecoder(TransformerDecoder):
    """The decoder of chapter 10, whose steps cost one position each.

    Args:
        config: the model's sizes and choices.
        encoder_width: the encoder's width, if it is not the decoder's.
    """

    def init_state(self, encoded: EncoderOutput) -> TransformerState:
        """Keys and values of the source, which are the same at every step."""
        sources = tuple(
            KeyValue(
                split_heads(block.cross.key(encoded.states), block.cross.heads),
                split_heads(block.cross.value(encoded.states), block.cross.heads),
            )
            for block in self.blocks
        )
        searching = torch.is_inference_mode_enabled()  # which takes many steps
        # read once for all of them; on the meta device there is nothing to read
        padded = not searching or encoded.mask.is_meta or not encoded.mask.all()
        mask = encoded.mask[:, None, None] if padded else None
        fast = None
        if searching:
            pairs = zip(self.blocks, sources, strict=True)
            fast = tuple(_prepare(block, one, encoded.mask) for block, one in pairs)
        return TransformerState(None, sources, mask, fast=fast)

    def step(
        self, token: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], TransformerState]:
        """One new position, with everything before it in the caches."""
        assert isinstance(state, TransformerState)
        start = 0 if state.caches is None else len(state.caches[0])
        x = self.embedding(token[:, None], start=start)[:, 0]  # R D
        caches = []
        for number in range(len(self.blocks)):
            x, cache = self._step_block(number, x, state)
            caches.append(cache)
        state = TransformerState(
            tuple(caches), state.sources, state.mask, state.rows, state.fast
        )
        return self.output(self.norm(x)).log_softmax(dim=-1), state

    def _step_block(
        self, number: int, x: Float[Tensor, "R D"], state: TransformerState
    ) -> tuple[Float[Tensor, "R D"], Float[Tensor, "U R 2 H K"]]:
        """The new position's output, and the cache with its key and value."""
        block, source = self.blocks[number], state.sources[number]
        cache = None if state.caches is None else state.caches[number]
        fast = None if state.fast is None else state.fast[number]

        def attend(x: Tensor) -> Tensor:
            nonlocal cache
            three = fast.project(x) if fast else _project(block.attention, x)
            mixed, cache = attend_to_prefix(block.attention, three, cache)
            return mixed

        def attend_to_encoder(x: Tensor) -> Tensor:
            if fast and fast.source:
                return fast.source.attend(x)
            return attend_to_source(block.cross, x, source, state.mask)

        # forward, not a call: for one row, looking for hooks takes as long as the work
        x = block.attention_residual.forward(x, attend)
        x = block.cross_residual.forward(x, attend_to_encoder)
        x = block.feed_forward_residual.forward(x, block.feed_forward.forward)
        assert cache is not None
        return x, cache


def _prepare(
    block: DecoderBlock, source: KeyValue, mask: Bool[Tensor, "B S"]
) -> FastStep:
    attention, cross = block.attention, block.cross
    folded = None
    if not _drops(cross):  # a folded source drops none
        folded = fold(cross.query, cross.output, source.key, source.value, mask)
    return fast_step((attention.query, attention.key, attention.value), folded)


def _project(
    attention: MultiHeadAttention, x: Float[Tensor, "R D"]
) -> Float[Tensor, "R F"]:
    return torch.cat([attention.query(x), attention.key(x), attention.value(x)], dim=-1)


def attend_to_prefix(
    attention: MultiHeadAttention,
    three: Float[Tensor, "R F"],
    cache: Float[Tensor, "T R 2 H K"] | None,
) -> tuple[Float[Tensor, "R D"], Float[Tensor, "U R 2 H K"]]:
    """One new position of every row attends to itself and to all before it.

    Args:
        attention: whose heads attend.
        three: query, key and value of the new position, side by side.
        cache: keys and values so far, oldest first, so that a new one is appended
            without moving the others; ``None`` before the first step.

    Returns:
        the output for the new position, and the cache with its key and value.
    """
    split = three.view(1, len(three), 3, attention.heads, -1)  # 1 R 3 H K
    query, new = split[0, :, 0, :, None], split[:, :, 1:]  # R H 1 K, 1 R 2 H K
    if attention.rotary is not None:
        start = 0 if cache is None else len(cache)
        query = attention.rotary(query, start=start)
        key = attention.rotary(new[0, :, 0, :, None], start=start)  # R H 1 K
        new = torch.stack([key[None, :, :, 0], new[:, :, 1]], dim=2)
    cache = new if cache is None else torch.cat([cache, new])
    keys, values = cache.permute(2, 1, 3, 0, 4).unbind(0)  # each R H U K
    mixed = _mix(attention, query, keys, values, None)  # R H 1 K
    return attention.output(mixed.reshape(len(three), -1)), cache


def attend_to_source(
    attention: MultiHeadAttention,
    x: Float[Tensor, "R D"],
    source: KeyValue,
    mask: Bool[Tensor, "B 1 1 S"] | None,
) -> Float[Tensor, "R D"]:
    """One new position of every row attends to its source, of which W rows share one.

    Args:
        attention: whose heads attend.
        x: the new position of every row; R = B · W.
        source: keys and values of B sources.
        mask: ``True`` where a row may look; ``None`` for everywhere.
    """
    sources = len(source.key)
    query = attention.query(x).view(sources, -1, x.shape[1])  # B W D
    query = split_heads(query, attention.heads)  # B H W K
    mixed = _mix(attention, query, source.key, source.value, mask)
    output: Tensor = attention.output(mixed.transpose(1, 2).reshape(x.shape))
    return output


def _mix(
    attention: MultiHeadAttention,
    query: Float[Tensor, "B H W K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "B 1 1 S"] | None,
) -> Float[Tensor, "B H W K"]:
    if not _drops(attention):
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # B H W S
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    dropped: Tensor = attention.dropout(scores.softmax(dim=-1))
    return dropped @ value


def _drops(attention: MultiHeadAttention) -> bool:
    return attention.training and attention.dropout.p > 0


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(TransformerSizes, SymbolsConfig):
    """Sizes and choices of a Transformer that can be built, trained and saved."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise ValueError(
                f"width={self.width} does not split into heads={self.heads}: pick a "
                f"divisor of {self.width}."
            )
        if self.positions is PositionKind.ROTARY and self.width // self.heads % 2:
            raise ValueError(
                f"rotary positions turn pairs of features, but a head of width="
                f"{self.width} / heads={self.heads} has an odd number: change one."
            )
        if self.tie_source and self.source_symbols != self.target_symbols:
            raise ValueError(
                f"tie_source with source_symbols={self.source_symbols} and "
                f"target_symbols={self.target_symbols}: one embedding for both needs "
                "one vocabulary."
            )

    def build(self) -> "Transformer":
        """A fresh model of these sizes."""
        return Transformer(self)


class Transformer(EncoderDecoder):
    """Encoder, and a decoder that attends to it and caches its keys and values.

    Vaswani et al. (2017), with the choices of the configuration.

    Args:
        config: the model's sizes and choices.
    """

    def __init__(self, config: TransformerConfig) -> None:
        encoder = TransformerEncoder(config.source_symbols, config)
        decoder = CachedDecoder(config)
        if config.tie_source:
            encoder.embedding.embedding.weight = decoder.embedding.embedding.weight
        super().__init__(encoder, decoder, config=config)
