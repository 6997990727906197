"""OpenNMT-py, built from our sizes. Its output layer is not tied to the embedding."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.bench.peers.stubs import need, stubs
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.models.transformer import TransformerConfig

UNNEEDED = (
    "ahocorasick",
    "configargparse",
    "fasttext",
    "pyonmttok",
    "rapidfuzz",
    "sentencepiece",
    "spacy",
)


class OpenNMT(nn.Module):
    """The loss of its Transformer, with PyTorch's cross entropy as it uses it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        with stubs(*UNNEEDED):
            need("onmt.model_builder")
        embeddings = need("onmt.modules").Embeddings
        sizes = (config.width, config.heads, config.feed_forward)
        dropout = (config.dropout, config.dropout)
        options = {"add_qkvbias": True}
        source, target = (
            embeddings(
                config.width,
                symbols,
                PAD,
                position_encoding=True,
                dropout=config.dropout,
            )
            for symbols in (config.source_symbols, config.target_symbols)
        )
        encoder = need("onmt.encoders.transformer").TransformerEncoder(
            config.encoder_layers, *sizes, *dropout, source, 0, 0, **options
        )
        decoder = need("onmt.decoders.transformer").TransformerDecoder(
            config.decoder_layers,
            *sizes,
            False,
            "scaled-dot-flash",
            *dropout,
            target,
            0,
            0,
            False,
            False,
            -3,
            0,
            **options,
        )
        self.model = need("onmt.models.model").NMTModel(encoder, decoder)
        self.generator = nn.Linear(config.width, config.target_symbols)
        for part in self.modules():  # it leaves weights as they were in memory
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)
            elif isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=1 / math.sqrt(config.width))

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss."""
        whole = torch.cat([batch.decoder_input[:, :1], batch.target], dim=1)
        states, _ = self.model(
            batch.source[..., None], whole[..., None], batch.source_mask.sum(dim=1)
        )
        scores = self.generator(states)
        return F.cross_entropy(
            scores.flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )
