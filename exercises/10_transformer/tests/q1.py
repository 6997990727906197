"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
points = None

import math

import torch
from torch import nn
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def two_layers(x, W_1, b_1, W_2, b_2, act=torch.relu):
    return act(x @ W_1.T + b_1) @ W_2.T + b_2


def smoothed(log_p, target, mask, epsilon):
    target = target.masked_fill(~mask, -100)
    return F.cross_entropy(
        log_p.flatten(0, 1), target.flatten(), label_smoothing=epsilon
    ).item()


def normalized(x, gain):
    x = x - x.mean(dim=-1, keepdim=True)
    return x / (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt() * gain


def attended(x, seen, mask, W):
    scores = x @ W[0].T @ (seen @ W[1].T).mT / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1).nan_to_num() @ seen @ W[2].T @ W[3].T


def in_turn(x, *sublayers):
    for sublayer, gain in sublayers:
        x = x + sublayer(normalized(x, gain))
    return x


def torch_layer(width, hidden, random):
    layer = nn.TransformerDecoderLayer(
        width, 1, hidden, dropout=0.0, batch_first=True, norm_first=True, bias=False
    )
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn(weight.shape, generator=random))
    return layer


def weights_of(layer):
    attention, cross = (
        torch.cat([part.in_proj_weight, part.out_proj.weight])
        .detach()
        .unflatten(0, (4, -1))
        for part in (layer.self_attn, layer.multihead_attn)
    )
    gains = [part.weight.detach() for part in (layer.norm1, layer.norm2, layer.norm3)]
    return {
        "attention": attention,
        "cross": cross,
        "think": (layer.linear1.weight.detach(), layer.linear2.weight.detach()),
        "gains": torch.stack(gains),
    }


def torch_answer(layer, x, memory, causal, real):
    with torch.no_grad():
        return layer(x, memory, tgt_mask=~causal, memory_key_padding_mask=~real[:, 0])


def size(module):
    return sum(weight.numel() for weight in module.parameters())


def torch_sizes(source_symbols, target_symbols, width, heads, hidden, layers):
    inside = nn.Transformer(width, heads, layers, layers, hidden, batch_first=True)
    embeddings = (source_symbols + target_symbols) * width
    tied = size(inside) + embeddings + target_symbols
    return [tied + target_symbols * width, tied]


@case("10_transformer", "q1")
def check_embedding_by_hand(embed):  # 2 points
    tokens = torch.tensor([[3, 1, 4], [2, 4, 0], [1, 1, 5]])
    table, positions = numbers(6, 4), numbers(9, 4, seed=1)
    try:
        answer = embed(tokens, table, positions, 2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: of `positions` take T rows, from `start` to `start` + T "
            f"− 1, and add them to B T D. PyTorch says: {error}"
        ) from error
    symbols, here = table[tokens], positions[2:5]
    expect(
        answer,
        2 * symbols + here,
        otherwise="The sum is wrong: √D times the row of `table`, plus the row of "
        "`positions`.",
        mistakes={
            "Embeddings look mis-scaled: multiply them by the square root of the width, "
            "or the positions drown them.": symbols + here,
            "Embeddings are multiplied by the width itself: take its square root.": (
                4 * symbols + here
            ),
            "Positions are multiplied by √D too: scale the embeddings before the sum.": (
                2 * (symbols + here)
            ),
            "The positions begin at 0: `start` is not used.": 2 * symbols
            + positions[:3],
            "The positions run down the batch: they belong to the columns, T.": (
                2 * symbols + here[:, None]
            ),
        },
    )
