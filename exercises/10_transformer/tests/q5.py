"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
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


@case("10_transformer", "q5")
def check_block(decoder_block):  # 4 points
    # as many target positions as source positions, so that no swap is an error
    layer = torch_layer(4, 6, torch.Generator().manual_seed(0))
    weights = weights_of(layer)
    x, memory = numbers(2, 3, 4, seed=1), numbers(2, 3, 4, seed=2)
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    real = torch.tensor([[[True, True, True]], [[True, True, False]]])
    W, W_cross, (W_1, W_2) = weights["attention"], weights["cross"], weights["think"]
    first, second, third = weights["gains"]

    def back(y):
        return attended(y, y, causal, W)

    def source(y):
        return attended(y, memory, real, W_cross)

    def alone(y):
        return (y @ W_1.T).relu() @ W_2.T

    def block(back=back, source=source):
        return in_turn(x, (back, first), (source, second), (alone, third))

    after_back = x + back(normalized(x, first))
    unadded = source(normalized(after_back, second))
    post = normalized(x + back(x), first)
    post = normalized(post + source(post), second)
    post = normalized(post + alone(post), third)
    expect(
        decoder_block(x, memory, causal, real, weights),
        torch_answer(layer, x, memory, causal, real),
        otherwise="The block is wrong: x + f(norm(x)) for self-attention with the mask "
        "`causal`, attention to the memory with the mask `real`, and `think`.",
        mistakes={
            "It looks at the source first: looking back at the target comes first.": (
                in_turn(x, (source, second), (back, first), (alone, third))
            ),
            "It thinks before it looks at the source: the position-wise network comes "
            "last.": in_turn(x, (back, first), (alone, third), (source, second)),
            "The masks are swapped: `causal` is for the target, `real` for the source.": (
                block(
                    lambda y: attended(y, y, real, W),
                    lambda y: attended(y, memory, causal, W_cross),
                )
            ),
            "The future is seen: the look at the target needs the mask `causal`.": block(
                lambda y: attended(y, y, torch.ones_like(causal), W)
            ),
            "Padding of the source is seen: the look at the memory needs the mask "
            "`real`.": block(source=lambda y: attended(y, memory, None, W_cross)),
            "The second sublayer looks at the target again: its keys and values come "
            "from the memory.": block(source=lambda y: attended(y, y, causal, W_cross)),
            "The memory asks and the target answers: queries come from x, keys and "
            "values from the memory.": block(
                source=lambda y: attended(memory, y, real, W_cross)
            ),
            "The memory is normed again: pre-norm is for what the decoder carries, and "
            "the encoder has normed its end.": block(
                source=lambda y: attended(y, normalized(memory, second), real, W_cross)
            ),
            "In the first sublayer only the queries are normed: keys and values are too.": (
                block(lambda y: attended(y, x, causal, W))
            ),
            "This is post-norm: norm what a sublayer hears, not the sum.": post,
            "What the look at the source says replaces x: add it, or what was said so "
            "far is lost.": unadded + alone(normalized(unadded, third)),
        },
    )
