"""Layers and models, in the order in which the course builds them.

Importing this package makes every model's configuration known by its name.
"""

from seq2seq_lib.models.attention import (
    AdditiveScores,
    BilinearScores,
    DotAttention,
    DotScores,
    LearnedDotScores,
    ScoreKind,
    dot_product_attention,
)
from seq2seq_lib.models.convolutional import ConvEncoder
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.ensemble import ensemble
from seq2seq_lib.models.lookup import LookupConfig, LookupDecoder, OneHotEncoder
from seq2seq_lib.models.multi_head import (
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
)
from seq2seq_lib.models.normalization import (
    LayerNorm,
    MaskedBatchNorm,
    NormKind,
    NormOrder,
    Residual,
)
from seq2seq_lib.models.positional import (
    LearnedPositions,
    PositionKind,
    Rotary,
    Sinusoids,
    rotate,
)
from seq2seq_lib.models.recurrent import (
    CellKind,
    GRUCell,
    LSTMCell,
    Pooling,
    Recurrent,
    RNNCell,
    RNNEncoder,
)
from seq2seq_lib.models.rnn_attention import AttentionDecoder, RNNAttentionConfig
from seq2seq_lib.models.rnn_seq2seq import (
    Bridge,
    EncoderKind,
    RNNDecoder,
    RNNSeq2SeqConfig,
    Seq2Seq,
)
from seq2seq_lib.models.saved import SavedModel, load_model, save_model
from seq2seq_lib.models.self_attention import SelfAttentionConfig, SelfAttentionEncoder
from seq2seq_lib.models.transformer import CachedDecoder, Transformer, TransformerConfig
from seq2seq_lib.models.transformer_blocks import (
    DecoderBlock,
    Embedding,
    EncoderBlock,
    FeedForward,
)
from seq2seq_lib.models.transformer_stacks import (
    DropoutSites,
    TransformerDecoder,
    TransformerEncoder,
)

__all__ = [
    "AdditiveScores",
    "AttentionDecoder",
    "BilinearScores",
    "Bridge",
    "CachedDecoder",
    "CellKind",
    "ConvEncoder",
    "DecoderBlock",
    "DotAttention",
    "DotScores",
    "Dropout",
    "DropoutSites",
    "Embedding",
    "EncoderBlock",
    "EncoderKind",
    "FeedForward",
    "GRUCell",
    "LSTMCell",
    "LayerNorm",
    "LearnedDotScores",
    "LearnedPositions",
    "LookupConfig",
    "LookupDecoder",
    "MaskedBatchNorm",
    "MultiHeadAttention",
    "NormKind",
    "NormOrder",
    "OneHotEncoder",
    "Pooling",
    "PositionKind",
    "RNNAttentionConfig",
    "RNNCell",
    "RNNDecoder",
    "RNNEncoder",
    "RNNSeq2SeqConfig",
    "Recurrent",
    "Residual",
    "Rotary",
    "SavedModel",
    "ScoreKind",
    "SelfAttention",
    "SelfAttentionConfig",
    "SelfAttentionEncoder",
    "Seq2Seq",
    "Sinusoids",
    "Transformer",
    "TransformerConfig",
    "TransformerDecoder",
    "TransformerEncoder",
    "causal_mask",
    "dot_product_attention",
    "ensemble",
    "load_model",
    "rotate",
    "save_model",
]
