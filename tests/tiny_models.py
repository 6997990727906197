"""Small models, corpora and recipes that tests of several rooms share.

``CONFIGS`` has every model that keeps the contract; a new one is tested by one line.
"""

import torch

from seq2seq_lib.data import EOS, Batch, Pair, ToyTask, Vocabulary, toy_corpus
from seq2seq_lib.interface import EncoderDecoder, ModelConfig
from seq2seq_lib.models.attention import ScoreKind
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.normalization import NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.recurrent import CellKind, Pooling
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.models.rnn_seq2seq import EncoderKind, RNNSeq2SeqConfig
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.models.self_attention import SelfAttentionConfig
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_stacks import DropoutSites
from seq2seq_lib.pretrained import load, publish

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
    "gru": RNNSeq2SeqConfig(**SIZES, width=8, pooling=Pooling.MEAN),
    "gru-one-way": RNNSeq2SeqConfig(
        **SIZES, width=8, bidirectional=False, pooling=Pooling.MAXIMUM
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
    "attention-learned": RNNAttentionConfig(
        **SIZES, width=8, scores=ScoreKind.LEARNED_DOT
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


def differentiable(model: EncoderDecoder) -> EncoderDecoder:
    """The model, still without dropout: cuDNN goes back through no RNN in eval mode."""
    for module in model.modules():
        if isinstance(module, torch.nn.RNNBase):
            module.dropout = 0.0
            module.train()
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


def copier(wrong=()):
    """Says what it reads, except some letters, for which it says the next one."""
    corpus = toy_corpus(ToyTask.COPY)
    size = len(corpus.source_vocabulary)
    model = LookupConfig(source_symbols=size, target_symbols=size).build()
    with torch.no_grad():
        for letter in range(4, size):
            said = 4 + (letter - 3) % (size - 4) if letter in wrong else letter
            model.decoder.letter[letter, said] = 20.0
        model.decoder.letter[EOS, EOS] = 20.0
    vocabulary = corpus.source_vocabulary
    return SavedModel(model, vocabulary, vocabulary, "toy-copy"), corpus.test


SEARCH = {"width": 2, "alpha": 0.5, "max_length": 30}


def trained(name="transformer", seed=0, split="toy-copy", **options):
    torch.manual_seed(seed)
    model = build(CONFIGS[name], torch.float)
    return SavedModel(
        model, Vocabulary("abcdefg"), Vocabulary("vwxyz"), split, **options
    )


def published(saved, directory, name="model"):
    publish([saved], name, recipe="r", search=SEARCH, directory=directory)
    return load(name, directory=directory)


TINY = """
[data]
corpus = "toy-copy"
budget = 256
development_words = 20

[model]
model = "RNNSeq2Seq"
width = 8

[training]
steps = 4
evaluate_every = 2
checkpoint_every = 2
monitor = "wer"

[search]
width = 2
max_length = 14
"""
