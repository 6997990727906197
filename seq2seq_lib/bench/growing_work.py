"""Work of growing size: layers, training steps and searches, each along one axis.

Axes: B batch, S source, D width, V vocabulary, W beam.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import EOS
from seq2seq_lib.interface import Encoder, EncoderDecoder, ModelConfig
from seq2seq_lib.models.convolutional import ConvEncoder
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.recurrent import RNNEncoder
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_stacks import TransformerDecoder
from seq2seq_lib.search import beam_search
from seq2seq_lib.training.loss import cross_entropy

Work = Callable[[], object]

WIDTH = 64
SYMBOLS = 43
LENGTH = 16
"""Of sources and targets where it is not what grows."""


class Axis(StrEnum):
    """What grows."""

    LENGTH = "sequence length"
    BATCH = "batch size"
    BEAM = "beam width"
    VOCABULARY = "vocabulary"


@dataclass(frozen=True)
class Growth:
    """Some work at several sizes.

    Attributes:
        axis: what grows.
        name: what works.
        sizes: from small to large.
        make: builds the work of one size, ready to run again and again.
    """

    axis: Axis
    name: str
    sizes: tuple[int, ...]
    make: Callable[[int], Work]


def doubling(first: int, last: int) -> tuple[int, ...]:
    """The sizes from first to last, each twice the one before.

    >>> doubling(16, 128)
    (16, 32, 64, 128)
    """
    sizes = [first]
    while sizes[-1] < last:
        sizes.append(2 * sizes[-1])
    return tuple(sizes)


def read_work(encoder: Encoder, length: int) -> Work:
    """Forward and backward of an encoder on one source of this length."""
    source = torch.randint(4, SYMBOLS, (1, length))
    mask = torch.ones(1, length, dtype=torch.bool)
    return lambda: _backward(encoder(source, mask).states.sum())


def attention_work(length: int, *, fused: bool) -> Work:
    """Forward and backward of one layer of self-attention with four heads."""
    attention = MultiHeadAttention(WIDTH, 4)
    x = torch.randn(1, length, WIDTH, requires_grad=True)

    def run() -> None:
        x.grad = None
        _backward(attention(x, x, weights=not fused)[0].sum())

    return run


def training_work(config: ModelConfig, *, rows: int) -> Work:
    """A whole training step: forward, loss, backward, AdamW."""
    model = config.build()
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batch = random_batch(rows, symbols=config.target_symbols)

    def run() -> None:
        outputs = model(batch)
        _backward(cross_entropy(outputs, batch.target, batch.target_mask))
        optimizer.step()
        optimizer.zero_grad()

    return run


def beam_work(width: int, *, sources: int) -> Work:
    """A beam search of ``LENGTH`` steps, in which no output ends early."""
    model = transformer().build()
    forbid_end(model)
    batch = random_batch(sources, symbols=SYMBOLS)
    with torch.no_grad():
        source = model.encode(batch)
    return lambda: beam_search(model.decoder, source, max_length=LENGTH, width=width)


def forbid_end(model: EncoderDecoder) -> None:
    """Give ``EOS`` probability 0, so that every search goes on to its last step."""
    assert isinstance(model.decoder, TransformerDecoder)
    with torch.no_grad():
        model.decoder.output.bias[EOS] = -torch.inf


def random_batch(rows: int, *, symbols: int) -> Batch:
    """Pairs of random symbols, ``LENGTH`` long with their ends."""
    tokens = torch.randint(4, symbols, (2, rows, LENGTH - 1)).tolist()
    return Batch.from_pairs([Pair(s, t) for s, t in zip(*tokens, strict=True)])


def transformer(symbols: int = SYMBOLS) -> TransformerConfig:
    """A small Transformer."""
    return TransformerConfig(
        source_symbols=symbols,
        target_symbols=symbols,
        width=WIDTH,
        encoder_layers=2,
        decoder_layers=2,
        feed_forward=4 * WIDTH,
        dropout=0.0,
    )


def rnn_with_attention(symbols: int = SYMBOLS) -> RNNAttentionConfig:
    """A small GRU with attention."""
    return RNNAttentionConfig(
        source_symbols=symbols, target_symbols=symbols, width=WIDTH, dropout=0.0
    )


def _backward(loss: Tensor) -> None:
    loss.backward()  # type: ignore[no-untyped-call]


def _gru(length: int) -> Work:
    return read_work(RNNEncoder(SYMBOLS, WIDTH, bidirectional=False), length)


def _cnn(length: int) -> Work:
    return read_work(ConvEncoder(SYMBOLS, WIDTH, layers=1), length)


GROWTHS = (
    Growth(Axis.LENGTH, "GRU", doubling(16, 2048), _gru),
    Growth(Axis.LENGTH, "CNN", doubling(16, 8192), _cnn),
    Growth(
        Axis.LENGTH,
        "attention, plain",
        doubling(16, 2048),
        lambda length: attention_work(length, fused=False),
    ),
    Growth(
        Axis.LENGTH,
        "attention, fused",
        doubling(16, 4096),
        lambda length: attention_work(length, fused=True),
    ),
    Growth(
        Axis.BATCH,
        "Transformer",
        doubling(1, 512),
        lambda rows: training_work(transformer(), rows=rows),
    ),
    Growth(
        Axis.BATCH,
        "GRU with attention",
        doubling(1, 512),
        lambda rows: training_work(rnn_with_attention(), rows=rows),
    ),
    Growth(
        Axis.BEAM,
        "1 source",
        doubling(1, 64),
        lambda width: beam_work(width, sources=1),
    ),
    Growth(
        Axis.BEAM,
        "32 sources",
        doubling(1, 64),
        lambda width: beam_work(width, sources=32),
    ),
    Growth(
        Axis.VOCABULARY,
        "Transformer",
        doubling(64, 32768),
        lambda symbols: training_work(transformer(symbols), rows=16),
    ),
)
