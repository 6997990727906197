"""Chapters 10 and 11: the Transformer.

Axes: B batch, S source, T target, D width, H heads, K width of one head, M width of
the memory, V vocabulary, R rows that are decoded, W of them for each source.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    EncoderOutput,
    SymbolsConfig,
)
from seq2seq_lib.models.linear import Linear
from seq2seq_lib.models.multi_head import (
    CrossAttention,
    FoldedSource,
    KeyValue,
    SelfAttention,
)
from seq2seq_lib.models.normalization import Normalization, NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind, Positions, Rotary
from seq2seq_lib.models.recurrent import Pooling, pool
from seq2seq_lib.models.transformer_blocks import (
    DecoderBlock,
    Embedding,
    EncoderBlock,
    FeedForward,
    Residual,
)


class DropoutSites(StrEnum):
    """Where features are dropped in training.

    ``PAPER``: what each sublayer adds, and embeddings with their positions (Vaswani et
    al., 2017, section 5.4). ``TORCH``: what each sublayer adds, attention weights, and
    the feed-forward network's inside, as in torch.nn.Transformer.
    """

    PAPER = "paper"
    TORCH = "torch"


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(SymbolsConfig):
    """Sizes and choices of a Transformer.

    Attributes:
        width: D.
        heads: H, a divisor of the width.
        encoder_layers: how many blocks read the source.
        decoder_layers: how many blocks say the target.
        feed_forward: the width inside the position-wise network.
        dropout: the share of features dropped.
        dropout_sites: where.
        norm: which normalization.
        order: before each sublayer, or after its residual sum as in the paper.
        final_norm: normalize the last block's output, as torch.nn.Transformer does;
            the paper's post-norm does not.
        positions: how positions are told.
        longest: positions in a learned table.
        tie_output: the output layer uses the target embedding's weights.
        tie_source: so does the source embedding, if both languages share a vocabulary.
    """

    width: int = 128
    heads: int = 4
    encoder_layers: int = 3
    decoder_layers: int = 3
    feed_forward: int = 512
    dropout: float = 0.1
    dropout_sites: DropoutSites = DropoutSites.PAPER
    norm: NormKind = NormKind.LAYER
    order: NormOrder = NormOrder.PRE
    final_norm: bool = True
    positions: PositionKind = PositionKind.SINUSOIDAL
    longest: int = 256
    tie_output: bool = True
    tie_source: bool = False

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

    @property
    def inner_dropout(self) -> float:
        """The dropout of attention weights and inside the feed-forward network."""
        return self.dropout if self.dropout_sites is DropoutSites.TORCH else 0.0

    def embedding(self, symbols: int) -> Embedding:
        """A fresh embedding with positions."""
        positions = Positions(self.positions, self.width, longest=self.longest)
        paper = self.dropout_sites is DropoutSites.PAPER
        dropout = self.dropout if paper else 0.0
        return Embedding(symbols, positions, width=self.width, dropout=dropout)

    def encoder_block(self) -> EncoderBlock:
        """A fresh block of the encoder."""
        return EncoderBlock(
            self._self_attention(),
            self._feed_forward(),
            (self._residual(), self._residual()),
        )

    def decoder_block(self, encoder_width: int) -> DecoderBlock:
        """A fresh block of the decoder."""
        cross = CrossAttention(
            self.width,
            self.heads,
            encoder_width=encoder_width,
            dropout=self.inner_dropout,
        )
        return DecoderBlock(
            self._self_attention(),
            cross,
            self._feed_forward(),
            (self._residual(), self._residual(), self._residual()),
        )

    def last_norm(self) -> Normalization:
        """What is behind the last block."""
        kind = self.norm if self.final_norm else NormKind.NONE
        return Normalization(kind, self.width)

    def _self_attention(self) -> SelfAttention:
        rotary = self.positions is PositionKind.ROTARY
        return SelfAttention(
            self.width,
            self.heads,
            dropout=self.inner_dropout,
            turn=Rotary(self.width // self.heads) if rotary else None,
        )

    def _feed_forward(self) -> FeedForward:
        return FeedForward(self.width, self.feed_forward, dropout=self.inner_dropout)

    def _residual(self) -> Residual:
        return Residual(
            self.width, norm=self.norm, order=self.order, dropout=self.dropout
        )

    def build(self) -> EncoderDecoder:
        """A fresh model of these sizes."""
        encoder, decoder = TransformerEncoder(self), TransformerDecoder(self)
        if self.tie_source:
            encoder.embedding.embedding.weight = decoder.embedding.embedding.weight
        return EncoderDecoder(encoder, decoder, config=self)


class TransformerEncoder(Encoder):
    """Embeds the source and lets its positions look at each other, block by block.

    Args:
        config: the model's sizes.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.width = config.width
        self.embedding = config.embedding(config.source_symbols)
        self.blocks: Sequence[EncoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            config.encoder_block() for _ in range(config.encoder_layers)
        )
        self.norm = config.last_norm()
        initialize(*self.blocks)

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; the summary is the mean of its states."""
        x = self.embedding(source)
        for block in self.blocks:
            x, _ = block(x, mask)
        states = self.norm(x, mask)
        return EncoderOutput(states, mask, pool(states, mask, Pooling.MEAN))

    def attention(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B H S S"]]:
        """How each block's heads look from every position at every other."""
        x, looked = self.embedding(source), []
        for block in self.blocks:
            x, seen = block(x, mask, weights=True)
            looked.append(seen)
        return looked


def initialize(*modules: nn.Module) -> None:
    """Draw every matrix as torch.nn.Transformer does (Glorot and Bengio, 2010)."""
    for module in modules:
        for parameter in module.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)


@dataclass(frozen=True)
class TransformerState(DecoderState):
    """The key–value caches of every block, and the mask of the sources.

    Rows that continue the same source, as those of a beam do, stand together and share
    its keys and values.

    Attributes:
        past: keys and values of the target so far; ``None`` before the first step.
        memory: keys and values of the sources.
        mask: ``True`` at real source positions; ``None`` if there is no padding.
        rows: W, how many rows each source has.
    """

    past: tuple[Float[Tensor, "T R 2 H K"], ...] | None
    memory: tuple[KeyValue | FoldedSource, ...]
    mask: Bool[Tensor, "B 1 1 S"] | None
    rows: int = 1

    def reorder(self, rows: Int[Tensor, " R"]) -> "TransformerState":
        """Keep these batch rows, in this order."""
        past = self.past and tuple(cache.index_select(1, rows) for cache in self.past)
        if rows.is_meta:  # there is nothing to read: every row has its own copy
            return self._keep(past, rows // self.rows, 1)
        sources = [row // self.rows for row in rows.tolist()]
        kept = list(dict.fromkeys(sources))
        share, rest = divmod(len(sources), max(1, len(kept)))
        if rest or sources != [source for source in kept for _ in range(share)]:
            kept, share = sources, 1  # not in groups: every row has its own copy
        first = self.memory[0]
        if isinstance(first, FoldedSource) or kept == list(range(len(first.key))):
            return TransformerState(past, self.memory, self.mask, share)
        return self._keep(past, torch.tensor(kept, device=rows.device), share)

    def _keep(
        self,
        past: tuple[Float[Tensor, "T R 2 H K"], ...] | None,
        sources: Int[Tensor, " B"],
        rows: int,
    ) -> "TransformerState":
        memory = tuple(
            one
            if isinstance(one, FoldedSource)
            else KeyValue(one.key[sources], one.value[sources])
            for one in self.memory
        )
        mask = None if self.mask is None else self.mask[sources]
        return TransformerState(past, memory, mask, rows)


class TransformerDecoder(Decoder):
    """Says the target, looking at what it said and at the source.

    Args:
        config: the model's sizes.
        encoder_width: M, if the encoder's width is not the decoder's.
    """

    def __init__(
        self, config: TransformerConfig, *, encoder_width: int | None = None
    ) -> None:
        super().__init__()
        self.encoder_width = encoder_width or config.width
        self.masks_targets = config.norm is NormKind.BATCH
        self.embedding = config.embedding(config.target_symbols)
        self.blocks: Sequence[DecoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            config.decoder_block(self.encoder_width)
            for _ in range(config.decoder_layers)
        )
        self.norm = config.last_norm()
        self.output = Linear(config.width, config.target_symbols)
        initialize(*self.blocks)
        if config.tie_output:
            self.output.weight = self.embedding.embedding.weight

    def init_state(self, memory: EncoderOutput) -> TransformerState:
        """Project the memory once for all steps."""
        # read once for all steps; on the meta device there is nothing to read
        padded = memory.mask.is_meta or not memory.mask.all()
        mask = memory.mask[:, None, None] if padded else None
        prepared = self._prepare(memory)
        if torch.is_inference_mode_enabled():  # a search, which takes many steps
            return TransformerState(None, self._fold(prepared, memory.mask), mask)
        return TransformerState(None, prepared, mask)

    def _prepare(self, memory: EncoderOutput) -> tuple[KeyValue, ...]:
        return tuple(block.cross.prepare(memory.states) for block in self.blocks)

    def _fold(
        self, prepared: tuple[KeyValue, ...], mask: Bool[Tensor, "B S"]
    ) -> tuple[KeyValue | FoldedSource, ...]:
        blocks = zip(self.blocks, prepared, strict=True)
        return tuple(block.cross.fold(one, mask) for block, one in blocks)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], TransformerState]:
        """One new position, with everything before it in the caches."""
        assert isinstance(state, TransformerState)
        start = 0 if state.past is None else len(state.past[0])
        x = self.embedding.forward(token[:, None], start=start)[:, 0]  # R D
        caches = []
        for number, block in enumerate(self.blocks):
            past = None if state.past is None else state.past[number]
            x, cache = block.step(x, past, state.memory[number], state.mask)
            caches.append(cache)
        state = TransformerState(tuple(caches), state.memory, state.mask, state.rows)
        return self._score(x, None), state

    def forward(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All positions at once, each blind to what comes after it."""
        x, real, _ = self._run(memory, tokens, weights=False)
        return self._score(x, real)

    def attention(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T S"]:
        """How the last block looks at the source, averaged over its heads."""
        return self.heads(memory, tokens)[-1].mean(dim=1)

    def heads(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B H T S"]]:
        """How every head of every block looks at the source."""
        return self._run(memory, tokens, weights=True)[2]

    def _run(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"], *, weights: bool
    ) -> tuple[Float[Tensor, "B T D"], Bool[Tensor, "B T"] | None, list[Tensor]]:
        # causality hides padding from every real position; only batch norm would see it
        real = tokens != PAD if self.masks_targets else None
        x = self.embedding(tokens)
        looked: list[Tensor] = []
        for block, prepared in zip(self.blocks, self._prepare(memory), strict=True):
            x, seen = block(x, real, prepared, memory.mask, weights=weights)
            looked += [] if seen is None else [seen]
        return x, real, looked

    def _score(
        self, x: Float[Tensor, "*B D"], real: Bool[Tensor, "*B"] | None
    ) -> Float[Tensor, "*B V"]:
        scores: Tensor = self.output.forward(self.norm.forward(x, real))
        return scores.log_softmax(dim=-1)
