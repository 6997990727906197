"""The readable forms that chapters show against those that training uses."""

import torch
from torch import Tensor

from seq2seq_lib.bench.compare import Contenders
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.models.multi_head import MultiHeadAttention, causal_mask
from seq2seq_lib.models.recurrent import CellKind, GRUCell, torch_recurrence, unroll
from seq2seq_lib.models.torch_transformer import to_torch
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_stacks import (
    DropoutSites,
    TransformerDecoder,
    TransformerEncoder,
)
from seq2seq_lib.training.loss import cross_entropy


def attention_variants(
    *, rows: int = 64, length: int = 16, width: int = 256
) -> Contenders:
    """Forward and backward of self-attention, readable and fused."""
    attention = MultiHeadAttention(width, 4)
    x = torch.randn(rows, length, width, requires_grad=True)
    mask = torch.ones(rows, 1, length, dtype=torch.bool)

    def run(*, weights: bool) -> None:
        output, _ = attention(x, x, mask, weights=weights)
        output.sum().backward()

    return {
        "readable": lambda: run(weights=True),
        "fused": lambda: run(weights=False),
    }


def recurrent_variants(
    *, rows: int = 64, length: int = 16, width: int = 128
) -> Contenders:
    """Forward and backward of a GRU, from its equations and PyTorch's."""
    cell = GRUCell(width, width)
    recurrence = torch_recurrence(CellKind.GRU, inputs=width, width=width)
    x = torch.randn(rows, length, width, requires_grad=True)
    mask = torch.ones(rows, length, dtype=torch.bool)

    def backward(states: Tensor) -> None:
        states.sum().backward()  # type: ignore[no-untyped-call]

    return {
        "readable": lambda: backward(unroll(cell, x, mask)[0]),
        "PyTorch's": lambda: backward(recurrence(x)[0]),
    }


def transformer_variants(*, rows: int = 256, length: int = 8) -> Contenders:
    """A training step of our Transformer and of torch.nn.Transformer, same sizes."""
    config = TransformerConfig(
        source_symbols=30,
        target_symbols=43,
        width=256,
        feed_forward=1024,
        dropout_sites=DropoutSites.TORCH,
    )
    model = config.build()
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    theirs = to_torch(model).train()
    random = torch.randint(4, 30, (rows, length)).tolist()
    batch = Batch.from_pairs([Pair(row, row) for row in random])
    future = ~causal_mask(batch.target.shape[1])

    def loss(outputs: Tensor) -> None:
        total = cross_entropy(outputs, batch.target, batch.target_mask)
        total.backward()  # type: ignore[no-untyped-call]

    def their_outputs() -> Tensor:
        states = theirs(
            encoder.embedding(batch.source),
            decoder.embedding(batch.decoder_input),
            tgt_mask=future,
            tgt_is_causal=True,
            src_key_padding_mask=~batch.source_mask,
            memory_key_padding_mask=~batch.source_mask,
        )
        scores: Tensor = decoder.output(states)
        return scores.log_softmax(dim=-1)

    return {
        "nn.Transformer": lambda: loss(their_outputs()),
        "ours": lambda: loss(model(batch)),
    }
