"""Dive into Deep Learning, built from our sizes.

Its package has the encoder; the decoder stands in the book only, so that it is put
together here from the package's parts. Post-norm, and the output is not tied.
"""

import math
import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.bench.peers.stubs import need, stubs
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.models.transformer import TransformerConfig

UNNEEDED = (
    "torchvision",
    "pandas",
    "requests",
    "IPython",
    "matplotlib_inline",
    "scipy",
)


class _DecoderBlock(nn.Module):
    def __init__(self, config: TransformerConfig, parts: Any) -> None:
        super().__init__()
        width, dropout = config.width, config.dropout

        def attention() -> Any:
            return parts.MultiHeadAttention(width, config.heads, dropout, bias=True)

        self.attention, self.cross = attention(), attention()
        self.ffn = parts.PositionWiseFFN(config.feed_forward, width)
        self.addnorm1, self.addnorm2, self.addnorm3 = (
            parts.AddNorm(width, dropout) for _ in range(3)
        )

    def forward(
        self, x: Tensor, past: Tensor, memory: Tensor, lengths: Tensor
    ) -> Tensor:
        x = self.addnorm1(x, self.attention(x, x, x, past))
        x = self.addnorm2(x, self.cross(x, memory, memory, lengths))
        thought: Tensor = self.addnorm3(x, self.ffn(x))
        return thought


class D2L(nn.Module):
    """The loss of its Transformer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        with stubs(*UNNEEDED):
            parts = need("d2l.torch")
        self.scale = math.sqrt(config.width)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Lazy modules")
            self.encoder = parts.TransformerEncoder(
                config.source_symbols,
                config.width,
                config.feed_forward,
                config.heads,
                config.encoder_layers,
                config.dropout,
                use_bias=True,
            )
            self.blocks = nn.ModuleList(
                _DecoderBlock(config, parts) for _ in range(config.decoder_layers)
            )
        self.embedding = nn.Embedding(config.target_symbols, config.width)
        self.positions = parts.PositionalEncoding(config.width, config.dropout)
        self.output = nn.Linear(config.width, config.target_symbols)
        with torch.no_grad():
            self(Batch.from_pairs([Pair([4], [4])]))  # its layers learn their sizes
        self.encoder.apply(parts.init_seq2seq)
        self.blocks.apply(parts.init_seq2seq)

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss."""
        lengths = batch.source_mask.sum(dim=1)
        memory = self.encoder(batch.source, lengths)
        rows, steps = batch.decoder_input.shape
        past = torch.arange(1, steps + 1).repeat(rows, 1)
        x = self.positions(self.embedding(batch.decoder_input) * self.scale)
        for block in self.blocks:
            x = block(x, past, memory, lengths)
        return F.cross_entropy(
            self.output(x).flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )
