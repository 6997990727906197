"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("10_transformer", "q2")
def check_two_layers(feed_forward):  # 2 points
    x, W_1, b_1 = numbers(2, 3, 4), numbers(5, 4, seed=1), numbers(5, seed=2)
    W_2, b_2 = numbers(4, 5, seed=3), numbers(4, seed=4)
    right = two_layers(x, W_1, b_1, W_2, b_2)
    try:
        answer = feed_forward(x, W_1, b_1, W_2, b_2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: a matrix is out × in, so a row x_t is multiplied by its "
            f"transpose, x @ W.T. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        right,
        otherwise="The output is wrong: W₂ max(0, W₁ x + b₁) + b₂ at every position.",
        mistakes={
            "There is no max(0, ·) between the layers: two linear layers are one.": (
                two_layers(x, W_1, b_1, W_2, b_2, act=lambda h: h)
            ),
            "The output is cut at 0 too: only what is between the layers is.": right.relu(),
            "b₁ is added behind max(0, ·): it belongs inside.": two_layers(
                x, W_1, b_1, W_2, b_2, act=lambda h: (h - b_1).relu() + b_1
            ),
            "b₂ is missing.": right - b_2,
        },
    )


@case("10_transformer", "q2")
def check_convolutions(convolved):  # 2 points
    x, W_1, b_1 = numbers(2, 3, 4), numbers(5, 4, seed=1), numbers(5, seed=2)
    W_2, b_2 = numbers(4, 5, seed=3), numbers(4, seed=4)
    right = two_layers(x, W_1, b_1, W_2, b_2)
    cut = two_layers(x.reshape(2, 4, 3).mT, W_1, b_1, W_2, b_2).mT
    try:
        answer = convolved(x, W_1[..., None], b_1, W_2[..., None], b_2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: conv1d wants the features in the middle, B D T, so swap "
            f"the last two axes of x. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        right,
        otherwise="With kernels of width 1 the output should be that of the two layers.",
        mistakes={
            "Positions get into each other's features: reshape and view only cut the row "
            "of numbers anew, a transpose swaps axes.": cut.reshape(2, 3, 4),
            "The output is B D T: swap its last two axes back.": right.mT,
        },
    )
