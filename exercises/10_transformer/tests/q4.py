"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("10_transformer", "q4")
def check_smoothed_loss(smoothed_loss):  # 2 points
    log_p, epsilon = (2 * numbers(2, 3, 5)).log_softmax(dim=-1), 0.3
    target = torch.tensor([[4, 1, 3], [2, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    right = -log_p.gather(2, target[..., None])[..., 0]
    even, total = -log_p.mean(dim=-1), -log_p.sum(dim=-1)
    mixed = 0.7 * right + 0.3 * even
    answer = smoothed_loss(log_p, target, mask, epsilon)
    assert not isinstance(answer, torch.Tensor) or answer.numel() == 1, (
        f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
    )
    expect(
        float(answer),
        smoothed(log_p, target, mask, epsilon),
        otherwise="The loss is wrong: at each real symbol −(1 − ε) log p(y) − ε/V Σ log "
        "p(v), then the mean.",
        mistakes={
            "Nothing is smoothed: this is the surprise at the right symbol alone.": (
                right[mask].mean().item()
            ),
            "ε went to the other V − 1 symbols: it is spread over all V, the right one "
            "among them.": (0.7 * right + 0.3 * (total - right) / 4)[mask]
            .mean()
            .item(),
            "The shares do not add up to 1: besides its 1 − ε, the right symbol has ε/V "
            "like all others.": (0.7 * right + 0.3 * (total - right) / 5)[mask]
            .mean()
            .item(),
            "The surprises at all symbols are added up: ε is shared, so each counts ε/V. "
            "Take their mean.": (0.7 * right + 0.3 * total)[mask].mean().item(),
            "The even part is averaged over padding too: the mask is for both parts.": (
                (0.7 * right[mask].mean() + 0.3 * even.mean()).item()
            ),
            "Padding counts: take the mean over the real symbols only.": (
                mixed.mean().item()
            ),
            "The model's probabilities are smoothed: mix the targets, and the logarithm "
            "stays inside the sum.": -(0.7 * (-right).exp() + 0.06)
            .log()[mask]
            .mean()
            .item(),
        },
    )


@case("10_transformer", "q4")
def check_lowest_loss(lowest_loss):  # 1 point
    V, epsilon = 5, 0.3
    rest, most = epsilon / V, 1 - epsilon + epsilon / V
    q = torch.tensor([most] + [rest] * 4)
    entropy = torch.distributions.Categorical(probs=q).entropy().item()
    expect(
        float(lowest_loss(V, epsilon)),
        entropy,
        otherwise="The lowest loss is wrong: −Σ q log q over the V symbols of the mixture.",
        mistakes={
            "No model reaches 0: it would have to be sure of y, and log p of all other "
            "symbols would be −∞.": 0.0,
            "All V symbols have ε/V, and the right one 1 − ε besides: add its two shares "
            "before the logarithm.": -0.7 * math.log(0.7) - V * rest * math.log(rest),
            "This is the surprise at the right symbol, not the mean over the mixture.": (
                -math.log(most)
            ),
        },
    )
