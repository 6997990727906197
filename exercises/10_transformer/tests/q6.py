"""Checks of question q6. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q6"
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


@case("10_transformer", "q6")
def check_weights_of_a_block(block_weights):  # 2 points
    D, H, hidden = 8, 2, 20
    right = [
        size(nn.TransformerEncoderLayer(D, H, hidden)),
        size(nn.TransformerDecoderLayer(D, H, hidden)),
    ]
    look, network = 4 * (D * D + D), 2 * D * hidden + hidden + D
    expect(
        [int(block_weights(D, H, hidden, cross=cross)) for cross in (False, True)],
        right,
        otherwise="The weights of a block are wrong: its looks, its network and its "
        "norms, all with biases.",
        mistakes={
            "The biases are missing: a layer from D to E has D·E + E weights.": [
                4 * D * D + 2 * D * hidden + 4 * D,
                8 * D * D + 2 * D * hidden + 6 * D,
            ],
            "A look has three layers here: queries, keys and values, and one more behind "
            "the heads, the output.": [
                3 * (D * D + D) + network + 4 * D,
                6 * (D * D + D) + network + 6 * D,
            ],
            "Every head has matrices from D to D here: heads share the width, so their "
            "number changes nothing.": [
                3 * H * (D * D + D) + D * D + D + network + 4 * D,
                6 * H * (D * D + D) + 2 * (D * D + D) + network + 6 * D,
            ],
            "The second look has no norm: three sublayers, three norms.": [
                right[0],
                right[1] - 2 * D,
            ],
            "A norm has a gain only: it has a bias too, 2·D in all.": [
                look + network + 2 * D,
                2 * look + network + 3 * D,
            ],
        },
    )


@case("10_transformer", "q6")
def check_weights_of_a_model(model_weights):  # 2 points
    S, V, D, hidden, layers = 11, 7, 8, 20, 3
    arguments = (S, V, D, 2, hidden, layers)
    right = torch_sizes(*arguments)
    reads = size(nn.TransformerEncoderLayer(D, 2, hidden))
    speaks = size(nn.TransformerDecoderLayer(D, 2, hidden))

    def off(difference, tied=None):
        tied = difference if tied is None else tied
        return [right[0] + difference, right[1] + tied]

    expect(
        [int(model_weights(*arguments, tied=tied)) for tied in (False, True)],
        right,
        otherwise="The weights of the model are wrong: blocks of both kinds, a norm "
        "behind each side, two embeddings, the output layer.",
        mistakes={
            "Tying changes nothing: a matrix that two layers share is learnt once.": off(
                0, V * D
            ),
            "Tied, the bias of the output layer is gone: only the matrix is shared.": off(
                0, -V
            ),
            "The norms behind the last blocks are missing: one for each side, 2·D.": off(
                -4 * D
            ),
            "All blocks look at a memory: those of the encoder have one look less.": off(
                layers * (speaks - reads)
            ),
        },
    )
