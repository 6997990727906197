"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("07_self_attention", "q3")
def check_causal_by_hand(causal_weights):  # 2 points
    scores = torch.tensor(
        [[1.0, 0.5, 2.0, -1.0], [0, 2, 1, 3], [2, -1, 0.5, 1], [1, 3, -2, 0]]
    )[None, None]
    back, plain = torch.ones(4, 4).tril().bool(), scores.softmax(dim=-1)
    hidden = scores.masked_fill(~back, -torch.inf)
    expect(
        causal_weights(scores),
        looking_back(scores),
        otherwise="The weights are wrong: row i is the softmax of its first i + 1 "
        "scores, then zeros.",
        mistakes={
            "Nothing is hidden: every position still looks at all.": plain,
            "The mask is off by one: each position sees the next.": scores.masked_fill(
                ~torch.ones(4, 4).tril(1).bool(), -torch.inf
            ).softmax(dim=-1),
            "A position may look at itself: without that the first has nothing to look "
            "at, and its weights are no numbers.": scores.masked_fill(
                ~torch.ones(4, 4).tril(-1).bool(), -torch.inf
            ).softmax(dim=-1),
            "The past is hidden and the future is seen: use the lower triangle, rows "
            "look at columns.": scores.masked_fill(~back.T, -torch.inf).softmax(dim=-1),
            "The mask comes after the softmax: the future is in the sum that every "
            "weight was divided by, and leaks.": plain * back,
            "The future still gets a weight: a score of 0 is a score like any other, "
            "minus infinity is not.": (scores * back).softmax(dim=-1),
            "The weights add up over those who look: the softmax belongs over the last "
            "axis.": hidden.softmax(dim=-2),
        },
    )


@case("07_self_attention", "q3")
def check_loud_future(causal_weights):  # 1 point
    scores = torch.tensor([[0.0, 900.0, 0.0], [1.0, 0.0, 900.0], [0.0, 1.0, 2.0]])
    scores = scores[None, None]
    weights = causal_weights(scores)
    assert bool(torch.isfinite(weights).all()), (
        "A loud future leaves 0/0: the softmax over everything gives the past nothing, "
        "and dividing by its sum cannot repair that. Hide the scores first."
    )
    expect(
        weights,
        looking_back(scores),
        otherwise="Large scores of the future change the weights of the past.",
    )
