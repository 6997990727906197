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


def copies_of(perturbed, x):
    copies = perturbed(x)
    expect_tensor(copies, torch.zeros(len(x), *x.shape))
    assert copies.dtype == x.dtype, (
        "The copies have another precision than x, so that rounding changes every "
        "position: clone x, or pass dtype=x.dtype."
    )
    return copies


def looking_back(scores):
    weights = torch.zeros_like(scores)
    for t in range(scores.shape[-1]):
        weights[..., t, : t + 1] = scores[..., t, : t + 1].softmax(dim=-1)
    return weights


@case("07_self_attention", "q4")
def check_perturbed_by_hand(perturbed):  # 2 points
    x = torch.tensor([[1, 2], [0, 0], [3, -1], [-2, 5]], dtype=torch.double)
    copies = copies_of(perturbed, x)
    moved = (copies - x).abs() > 0
    alone, is_zero = torch.eye(4, dtype=torch.bool), (x == 0).all(dim=1)
    assert not bool(moved.all()), (
        "Every copy differs from x everywhere: was x itself changed? Clone it first."
    )
    expect(
        moved.any(dim=2),
        alone,
        otherwise="Copy j should differ from x at position j, and nowhere else.",
        mistakes={
            "The changes pile up: begin every experiment with a clone of x.": (
                torch.ones(4, 4, dtype=torch.bool).tril()
            ),
            "A position of zeros was not changed: to multiply it or to set it to zero "
            "does nothing there. Add something.": alone & ~is_zero,
            "Everything else was changed: keep the other positions as they are.": (
                ~alone
            ),
        },
    )


@case("07_self_attention", "q4")
def check_felt_by_hand(felt):  # 2 points
    before = torch.tensor([[1.0, 2], [0, 0], [3, -1]], dtype=torch.double)
    moves = torch.zeros(3, 3, 2, dtype=torch.double)  # copies, outputs, features
    moves[0, 0] = torch.tensor([2.0, 1])
    moves[0, 1] = torch.tensor([-1.0, -3])
    moves[1, 1] = torch.tensor([0.0, 3.0])
    moves[1, 2] = torch.tensor([0.0, 1e-7])
    moves[2, 0] = torch.tensor([0.5, -0.5])
    moves[2, 2] = torch.tensor([-2.0, 1])
    right = moves.abs().sum(dim=2).T > 0
    expect(
        felt(before, before + moves),
        right,
        otherwise="The wrong outputs moved: compare each of after with before, and look "
        "at all features of an output.",
        mistakes={
            "Rows and columns are swapped: rows are outputs, columns are what changed.": (
                right.T
            ),
            "Only moves upwards are seen: take the norm of the difference, or its "
            "absolute value.": moves.amax(dim=2).T > 0,
            "Only outputs are seen that move upwards on the whole: take the norm of "
            "the difference.": moves.sum(dim=2).T > 0,
            "Features that move in opposite directions cancel: take absolute values "
            "before you add them up.": moves.sum(dim=2).T != 0,
            "A small move is not seen: only what is shorter than 1e-9 is rounding.": (
                (moves.abs().amax(dim=2) > 1e-5).T
            ),
            "An output counts only if all its features move: one is enough.": (
                (moves != 0).all(dim=2).T
            ),
            "Movement and rest are mixed up: True is for what moved.": ~right,
        },
    )
