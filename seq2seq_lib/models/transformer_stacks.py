"""Chapter 10: the Transformer's encoder and decoder, blocks upon an embedding.

Axes: B batch, S source, T target, D width, H heads, V vocabulary, R rows kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.interface import Decoder, DecoderState, Encoder, EncoderOutput
from seq2seq_lib.models.fast import Linear
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import NormKind, NormOrder, make_norm
from seq2seq_lib.models.positional import PositionKind, Rotary, make_positions
from seq2seq_lib.models.transformer_blocks import DecoderBlock, Embedding, EncoderBlock


class DropoutSites(StrEnum):
    """Where features are dropped in training.

    ``PAPER``: what each sublayer adds, and embeddings with their positions (Vaswani et
    al., 2017, section 5.4). ``TORCH``: what each sublayer adds, attention weights, and
    the feed-forward network's inside, as in torch.nn.Transformer.
    """

    PAPER = "paper"
    TORCH = "torch"


@dataclass(frozen=True, kw_only=True)
class TransformerSizes:
    """Sizes and choices of a Transformer, which its encoder and decoder share.

    Attributes:
        target_symbols: V, the size of the target vocabulary.
        width: D.
        heads: H, a divisor of the width.
        encoder_layers: how many blocks the encoder has.
        decoder_layers: how many blocks the decoder has.
        feed_forward: the width inside the position-wise network.
        dropout: the share of features dropped.
        dropout_sites: where.
        norm: which normalization.
        order: before each sublayer, or after its residual sum as in the paper.
        final_norm: normalize the last block's output, as torch.nn.Transformer does;
            the paper's post-norm does not.
        positions: how positions are told.
        longest: positions in a table.
        tie_output: the output layer uses the target embedding's weights.
        tie_source: so does the source embedding, if both languages share a vocabulary.
    """

    target_symbols: int
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

    @property
    def embedding_dropout(self) -> float:
        """The dropout of embeddings with their positions."""
        return self.dropout if self.dropout_sites is DropoutSites.PAPER else 0.0

    @property
    def inner_dropout(self) -> float:
        """The dropout of attention weights and inside the feed-forward network."""
        return self.dropout if self.dropout_sites is DropoutSites.TORCH else 0.0

    @property
    def last_norm(self) -> NormKind:
        """What normalizes the last block's output."""
        return self.norm if self.final_norm else NormKind.NONE

    def embedding(self, symbols: int) -> Embedding:
        """A fresh embedding with positions."""
        positions = make_positions(self.positions, self.width, self.longest)
        return Embedding(symbols, self.width, positions, dropout=self.embedding_dropout)

    def rotary(self) -> Rotary | None:
        """A fresh table for all blocks of one side, if positions are rotary."""
        if self.positions is PositionKind.ROTARY:
            return Rotary(self.width // self.heads)
        return None


class TransformerEncoder(Encoder):
    """Embeds the source and lets its positions attend to each other, block by block.

    Args:
        symbols: the size of the source vocabulary.
        config: the model's sizes and choices.
    """

    def __init__(self, symbols: int, config: TransformerSizes) -> None:
        super().__init__()
        self.width = config.width
        self.embedding = config.embedding(symbols)
        rotary = config.rotary()
        self.blocks: Sequence[EncoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            EncoderBlock(
                config.width,
                config.heads,
                config.feed_forward,
                order=config.order,
                norm=config.norm,
                dropout=config.dropout,
                inner_dropout=config.inner_dropout,
                rotary=rotary,
            )
            for _ in range(config.encoder_layers)
        )
        self.norm = make_norm(config.last_norm, config.width)
        initialize(*self.blocks)

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; the summary is the mean of its states."""
        x = self.embedding(source)
        for block in self.blocks:
            x, _ = block(x, mask)
        states = self.norm(x, mask)
        return EncoderOutput.averaged(states, mask)

    def attention(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B H S S"]]:
        """The attention weights of every block's heads."""
        x, found = self.embedding(source), []
        for block in self.blocks:
            x, weights = block(x, mask, weights=True)
            found.append(weights)
        return found


@dataclass(frozen=True)
class PrefixState(DecoderState):
    """The encoded source and all tokens so far."""

    encoded: EncoderOutput
    tokens: Int[Tensor, "B T"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "PrefixState":
        """Keep these batch rows, in this order."""
        return PrefixState(self.encoded.reorder(rows), self.tokens[rows])


class TransformerDecoder(Decoder):
    """Generates the target, attending to its own prefix and to the source.

    It knows the full pass only: a step passes the whole prefix through the blocks
    again. Chapter 11's ``CachedDecoder`` keeps keys and values instead.

    Args:
        config: the model's sizes and choices.
        encoder_width: the encoder's width, if it is not the decoder's.
    """

    def __init__(
        self, config: TransformerSizes, *, encoder_width: int | None = None
    ) -> None:
        super().__init__()
        self.encoder_width = encoder_width or config.width
        self.masks_targets = config.norm is NormKind.BATCH
        self.embedding = config.embedding(config.target_symbols)
        rotary = config.rotary()
        self.blocks: Sequence[DecoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            DecoderBlock(
                config.width,
                config.heads,
                config.feed_forward,
                encoder_width=encoder_width,
                order=config.order,
                norm=config.norm,
                dropout=config.dropout,
                inner_dropout=config.inner_dropout,
                rotary=rotary,
            )
            for _ in range(config.decoder_layers)
        )
        self.norm = make_norm(config.last_norm, config.width)
        self.output = Linear(config.width, config.target_symbols)
        initialize(*self.blocks)
        if config.tie_output:
            self.output.weight = self.embedding.embedding.weight

    def init_state(self, encoded: EncoderOutput) -> DecoderState:
        """The state before the first step: no tokens yet."""
        none = torch.empty(
            len(encoded), 0, dtype=torch.long, device=encoded.mask.device
        )
        return PrefixState(encoded, none)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """Pass the whole prefix through the blocks, and keep the last position."""
        assert isinstance(state, PrefixState)
        tokens = torch.cat([state.tokens, token[:, None]], dim=1)  # B T
        log_probabilities = self(state.encoded, tokens)[:, -1]
        return log_probabilities, PrefixState(state.encoded, tokens)

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All positions at once; none sees what comes after it."""
        log_probabilities, _ = self._run(encoded, tokens, weights=False)
        return log_probabilities

    def attention(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T S"]:
        """The last block's attention to the source, averaged over its heads."""
        return self.heads(encoded, tokens)[-1].mean(dim=1)

    def heads(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B H T S"]]:
        """The attention of every block's heads to the source."""
        _, found = self._run(encoded, tokens, weights=True)
        return found

    def _run(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"], *, weights: bool
    ) -> tuple[Float[Tensor, "B T V"], list[Tensor]]:
        # causality hides padding from every real position; only batch norm would see it
        mask = tokens != PAD if self.masks_targets else None
        x, found = self.embedding(tokens), []
        for block in self.blocks:
            x, shares = block(x, encoded.states, encoded.mask, mask, weights=weights)
            found += [] if shares is None else [shares]
        logits = self.output(self.norm(x, mask))  # B T V
        return logits.log_softmax(dim=-1), found


def initialize(*blocks: nn.Module) -> None:
    """Draw every matrix as torch.nn.Transformer does (Glorot and Bengio, 2010).

    There, the projections to queries, keys and values are one matrix of three times the
    width, which makes its numbers smaller by √2.
    """
    for block in blocks:
        for parameter in block.parameters():
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        for layer in block.modules():
            if isinstance(layer, MultiHeadAttention):
                for projection in (layer.query, layer.key, layer.value):
                    nn.init.xavier_uniform_(projection.weight, gain=math.sqrt(1 / 2))
