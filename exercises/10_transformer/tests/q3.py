"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("10_transformer", "q3")
def check_rise_and_fall(learning_rate):  # 3 points
    w, steps, peak = 4, range(16), 0.8
    shares = {
        "rise": [(s + 1) / w for s in steps],
        "late rise": [s / w for s in steps],
        "fall": [math.sqrt(w / (s + 1)) for s in steps],
        "late fall": [math.sqrt(w / max(1, s)) for s in steps],
        "quick fall": [w / (s + 1) for s in steps],
        "cliff": [1 / math.sqrt(s + 1) for s in steps],
        "short fall": [1 / math.sqrt(max(1, s + 2 - w)) for s in steps],
        "flat": [1.0] * 16,
    }

    def joined(rise, fall):
        return [peak * x for x in shares[rise][:w] + shares[fall][w:]]

    try:
        answer = [float(learning_rate(s, peak, w)) for s in steps]
    except ZeroDivisionError as error:
        raise AssertionError(
            "Step 0 divides by zero: the paper's formula counts steps from 1, so put "
            "step + 1 into it."
        ) from error
    highest = [peak * max(x, y) for x, y in zip(shares["rise"], shares["fall"])]
    expect(
        answer,
        joined("rise", "fall"),
        otherwise="The rates are wrong: a share n/w of the peak over the first w steps, "
        "then √(w/n), with n = step + 1.",
        mistakes={
            "Everything comes one step late: step 0 has the rate 0 and learns nothing. "
            "Count n = step + 1.": joined("late rise", "late fall"),
            "The rise comes one step late: the rate of step 0 is 0, and the peak is "
            "never reached.": joined("late rise", "fall"),
            "The fall comes one step late: the peak lasts two steps. Count n = step + 1 "
            "on both sides.": joined("rise", "late fall"),
            "It falls as 1/n, too quickly: take the square root.": joined(
                "rise", "quick fall"
            ),
            "It jumps down behind the warm-up: 1/√n is not 1 there, √(w/n) is.": joined(
                "rise", "cliff"
            ),
            "The fall counts the steps behind the warm-up: it should count all steps, or "
            "it is too quick.": joined("rise", "short fall"),
            "It does not fall behind the warm-up.": joined("rise", "flat"),
            "The larger of rise and fall was taken: it is the smaller.": highest,
        },
    )
