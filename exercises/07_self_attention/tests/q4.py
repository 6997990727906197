"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
points = None

import math

import torch
from torch import nn
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect, expect_tensor


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def refuses(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    except RuntimeError:
        return False
    return False


def slices(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)


def brought(x, W_Q, W_K, W_V, **options):
    return [
        F.scaled_dot_product_attention(*(x @ W.T for W in own), **options)
        for own in zip(W_Q, W_K, W_V, strict=True)
    ]


def mixed(heads, W_O):
    return sum(o @ W.T for o, W in zip(heads, W_O, strict=True))


def looking_back(scores):
    weights = torch.zeros_like(scores)
    for t in range(scores.shape[-1]):
        weights[..., t, : t + 1] = scores[..., t, : t + 1].softmax(dim=-1)
    return weights


@case("07_self_attention", "q4")
def check_felt_by_hand(felt_in):  # 2 points
    x = torch.tensor([[1, 2], [0, 0], [3, -1], [-2, 5]], dtype=torch.double)
    mix = torch.tensor(
        [[1, 0, 0, 2], [-1, 1, 0, 0], [0, 3, -2, 0], [0, 0, 0, 1]], dtype=torch.double
    )
    right, is_zero = mix != 0, (x == 0).all(dim=1)
    expect(
        felt_in(mix, torch.eye(2, dtype=torch.double), x),
        right,
        otherwise="The wrong outputs move: change one position at a time, and compare "
        "the new outputs with those of the unchanged x.",
        mistakes={
            "Rows and columns are swapped: rows are outputs, columns are what changed.": (
                right.T
            ),
            "The changes pile up: begin every experiment with a clone of x.": (
                mix.cumsum(dim=1) != 0
            ),
            "A position of zeros was not changed: to multiply it or to set it to zero "
            "does nothing there. Add something.": right & ~is_zero,
            "Only moves upwards are seen: take the norm of the difference, or its "
            "absolute value.": mix > 0,
        },
    )


@case("07_self_attention", "q4")
def check_felt_in_opposite_features(felt_in):  # 1 point
    x = torch.tensor([[1, 2], [4, -3], [2, 2]], dtype=torch.double)
    mix = torch.tensor([[1, 0, 1], [1, 1, 0], [0, 0, 1]], dtype=torch.double)
    features = torch.tensor([[2, 0], [-1, -1]], dtype=torch.double)
    expect(
        felt_in(mix, features, x),
        mix != 0,
        otherwise="Where features move in opposite directions, the answer is wrong.",
        mistakes={
            "Features that move in opposite directions cancel: take absolute values "
            "before you add them up.": torch.zeros(3, 3, dtype=torch.bool),
        },
    )
