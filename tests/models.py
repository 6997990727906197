"""Every model that keeps the contract; a new one is tested by adding one line."""

import torch

from seq2seq_lib.attention import ScoreKind
from seq2seq_lib.data.batch import Batch, Pair
from seq2seq_lib.interface import EncoderDecoder, ModelConfig
from seq2seq_lib.lookup import LookupConfig
from seq2seq_lib.normalization import NormKind, NormOrder
from seq2seq_lib.positional import PositionKind
from seq2seq_lib.recurrent import CellKind, Summary
from seq2seq_lib.rnn_attention import RNNAttentionConfig
from seq2seq_lib.rnn_seq2seq import EncoderKind, RNNSeq2SeqConfig
from seq2seq_lib.self_attention import SelfAttentionConfig
from seq2seq_lib.transformer import DropoutSites, TransformerConfig

SIZES = {"source_symbols": 11, "target_symbols": 9}
SMALL = {
    "width": 8,
    "heads": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "feed_forward": 12,
}

CONFIGS: dict[str, ModelConfig] = {
    "lookup": LookupConfig(**SIZES),
    "rnn": RNNSeq2SeqConfig(**SIZES, width=8, cell=CellKind.RNN),
    "lstm": RNNSeq2SeqConfig(**SIZES, width=8, cell=CellKind.LSTM, layers=2),
    "gru": RNNSeq2SeqConfig(**SIZES, width=8, summary=Summary.MEAN),
    "gru-one-way": RNNSeq2SeqConfig(
        **SIZES, width=8, bidirectional=False, summary=Summary.MAXIMUM
    ),
    "convolutional": RNNSeq2SeqConfig(
        **SIZES, width=8, layers=5, encoder=EncoderKind.CONVOLUTIONAL
    ),
    "attention": RNNAttentionConfig(**SIZES, width=8),
    "attention-lstm": RNNAttentionConfig(
        **SIZES, width=8, cell=CellKind.LSTM, layers=2, scores=ScoreKind.BILINEAR
    ),
    "attention-dot": RNNAttentionConfig(**SIZES, width=8, scores=ScoreKind.DOT),
    "attention-scaled": RNNAttentionConfig(
        **SIZES, width=8, scores=ScoreKind.SCALED_DOT
    ),
    "self-attention": SelfAttentionConfig(**SIZES, width=8, heads=2, layers=2),
    "transformer": TransformerConfig(**SIZES, **SMALL),
    "transformer-post": TransformerConfig(
        **SIZES, **SMALL, order=NormOrder.POST, final_norm=False, tie_output=False
    ),
    "transformer-torch": TransformerConfig(
        **SIZES, **SMALL, dropout_sites=DropoutSites.TORCH
    ),
    "transformer-batch": TransformerConfig(**SIZES, **SMALL, norm=NormKind.BATCH),
    "transformer-bare": TransformerConfig(
        **SIZES, **SMALL, norm=NormKind.NONE, positions=PositionKind.NONE
    ),
    "transformer-learned": TransformerConfig(
        **SIZES, **SMALL, positions=PositionKind.LEARNED, longest=20
    ),
    "transformer-rotary": TransformerConfig(
        **SIZES, **SMALL, positions=PositionKind.ROTARY
    ),
}


def build(config: ModelConfig, dtype: torch.dtype = torch.double) -> EncoderDecoder:
    """A model whose weights are all random and far from zero, without dropout."""
    torch.manual_seed(0)
    model = config.build().to(dtype).eval()
    for parameter in model.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    return model


def example_batch() -> Batch:
    """Three rows of different lengths, on both sides in a different order."""
    return Batch.from_pairs(
        [
            Pair([4, 5, 6, 7, 10], [4, 5]),
            Pair([8, 9], [6, 7, 8, 4, 5]),
            Pair([10, 4, 4], [8]),
        ]
    )
