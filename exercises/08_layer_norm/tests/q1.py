"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
points = None

import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect

STATES = torch.tensor(
    [
        [[1.0, 7.0, 9.0, 15.0], [0.0, 6.0, 6.0, 8.0], [2.0, 2.0, 6.0, 6.0]],
        [[3.0, 9.0, 1.0, 3.0], [4.0, 8.0, 5.0, 11.0], [-1.0, 5.0, 2.0, 0.0]],
    ]
)
WEIGHT = torch.tensor([2.0, 0.5, -1.0, 3.0])
BIAS = torch.tensor([0.5, -1.0, 4.0, 0.0])


def scores_over(x, axes, correction=0):
    variance = x.var(dim=axes, keepdim=True, correction=correction)
    return (x - x.mean(dim=axes, keepdim=True)) / (variance + 1e-5).sqrt()


def several(answer, names):
    wanted = f"Return {len(names)} things, {', '.join(names)}"
    assert isinstance(answer, tuple | list), f"{wanted}: `return first, second`."
    assert len(answer) == len(names), f"{wanted}, not {len(answer)}."
    return answer


def normalized(x):
    return F.layer_norm(x, x.shape[-1:])


def heard(x, W):
    return 2 * (x @ W.T).tanh()


def pre_steps(x, weights):
    for W in weights:
        x = x + heard(normalized(x), W)
    return x


def post_steps(x, weights):
    for W in weights:
        x = normalized(x + heard(x, W))
    return x


def stacked(step, x, weights):
    for W in weights:
        x = step(x, W)
    return x


X = torch.tensor([[[3.0, -1.0, 0.5], [0.0, 2.0, -4.0]]])
LAYERS = torch.tensor(
    [
        [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.7, 0.2, 0.2]],
        [[-0.1, 0.6, 0.3], [0.8, -0.3, 0.0], [0.2, 0.1, -0.5]],
    ]
)


def by_autograd(x, weight, upstream, epsilon=1e-5):
    """PyTorch's own three gradients."""
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)
    return torch.autograd.grad(y, (x, weight, bias), upstream)


UPSTREAM = torch.tensor(
    [
        [[1.0, 0.0, -2.0, 0.5], [0.0, 3.0, 1.0, -1.0], [2.0, 1.0, 0.0, 4.0]],
        [[-1.0, 0.5, 0.0, 2.0], [1.0, 1.0, -3.0, 0.0], [0.0, -2.0, 1.5, 1.0]],
    ]
)
GRADIENTS = ("the gradients of x", "of the weight", "of the bias")


@case("08_layer_norm", "q1")
def check_layer_norm_by_hand(layer_norm):  # 2 points
    right = scores_over(STATES, -1)
    centred = STATES - STATES.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    size = (STATES.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    expect(
        layer_norm(STATES, WEIGHT, BIAS),
        right * WEIGHT + BIAS,
        otherwise="The outputs are wrong: subtract the mean over the features, divide by "
        "√(σ² + ε), then scale by the weight and add the bias.",
        mistakes={
            "The average runs over the positions: layer norm takes the features of one "
            "position, the last axis.": scores_over(STATES, 1) * WEIGHT + BIAS,
            "The average runs over the batch: rows must not meet, layer norm takes the "
            "features of one position.": scores_over(STATES, 0) * WEIGHT + BIAS,
            "One mean is taken over a whole sequence, positions and features: earlier "
            "positions would hear of later ones.": (
                scores_over(STATES, (1, 2)) * WEIGHT + BIAS
            ),
            "Each feature is averaged over all positions of the batch: that is batch "
            "norm.": scores_over(STATES, (0, 1)) * WEIGHT + BIAS,
            "The variance is divided by D − 1: this is a size, not an estimate, so divide "
            "by D.": scores_over(STATES, -1, correction=1) * WEIGHT + BIAS,
            "The differences are divided by the variance: take its root.": (
                centred / (variance + 1e-5) * WEIGHT + BIAS
            ),
            "The mean is measured but not subtracted.": (
                STATES / (variance + 1e-5).sqrt() * WEIGHT + BIAS
            ),
            "The size is that of x itself: subtract the mean before you square.": (
                centred / size * WEIGHT + BIAS
            ),
            "The weight is not used.": right + BIAS,
            "The bias is not used.": right * WEIGHT,
            "The bias is scaled too: multiply by the weight first, then add the bias.": (
                (right + BIAS) * WEIGHT
            ),
        },
    )


@case("08_layer_norm", "q1")
def check_small_features(layer_norm):  # 2 points
    x = torch.tensor([[[-0.010, 0.002, 0.002, 0.006]]])  # mean 0, deviation 0.006
    ones, zeros = torch.ones(4), torch.zeros(4)
    expect(
        layer_norm(x, ones, zeros, epsilon=1e-4),
        x / (0.006**2 + 1e-4) ** 0.5,
        otherwise="Small features come out wrong: add ε to the variance, then take the "
        "root.",
        mistakes={
            "ε stands outside the root: add it to the variance, then take the root.": (
                x / (0.006 + 1e-4)
            ),
            "ε is not used: a position whose features are all equal would become 0/0.": (
                x / 0.006
            ),
            "ε is always 0.00001: use the one that is passed.": (
                x / (0.006**2 + 1e-5) ** 0.5
            ),
        },
    )
