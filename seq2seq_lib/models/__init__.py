"""Layers and models, in the order in which the course builds them.

Importing this package makes every model's configuration known by its name.
"""

from seq2seq_lib.models.attention import ScoreKind, dot_product_attention
from seq2seq_lib.models.convolutional import ConvEncoder
from seq2seq_lib.models.ensemble import ensemble
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.multi_head import CrossAttention, SelfAttention, causal_mask
from seq2seq_lib.models.normalization import NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.recurrent import CellKind, Pooling, RNNEncoder
from seq2seq_lib.models.rnn_attention import AttentionDecoder, RNNAttentionConfig
from seq2seq_lib.models.rnn_seq2seq import EncoderKind, RNNDecoder, RNNSeq2SeqConfig
from seq2seq_lib.models.saved import SavedModel, load_model, save_model
from seq2seq_lib.models.self_attention import SelfAttentionConfig
from seq2seq_lib.models.transformer import DropoutSites, TransformerConfig

__all__ = [
    "AttentionDecoder",
    "CellKind",
    "ConvEncoder",
    "CrossAttention",
    "DropoutSites",
    "EncoderKind",
    "LookupConfig",
    "NormKind",
    "NormOrder",
    "Pooling",
    "PositionKind",
    "RNNAttentionConfig",
    "RNNDecoder",
    "RNNEncoder",
    "RNNSeq2SeqConfig",
    "SavedModel",
    "ScoreKind",
    "SelfAttention",
    "SelfAttentionConfig",
    "TransformerConfig",
    "causal_mask",
    "dot_product_attention",
    "ensemble",
    "load_model",
    "save_model",
]
