"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("07_self_attention", "q2")
def check_cat_by_hand(self_attention):  # 2 points
    x = torch.eye(3)[None]  # c, a, t
    W_Q = torch.tensor([[[0.0, math.log(2), math.log(3)]]])
    W_K = torch.tensor([[[0.0, 0.0, 1.0]]])
    W_V = torch.tensor([[[20.0, 0.0, 40.0]]])
    W_O = torch.tensor([[[1.0], [0.5], [0.0]]])
    scores = (x @ W_Q[0].T) @ (x @ W_K[0].T).mT
    expect(
        self_attention(x, W_Q, W_K, W_V, W_O),
        torch.tensor([[[20.0, 10.0, 0.0], [25.0, 12.5, 0.0], [28.0, 14.0, 0.0]]]),
        otherwise="The outputs for the letters of cat are wrong: with one head they are "
        "20, 25 and 28 times the only column of W_O.",
        mistakes={
            "Queries and keys are swapped: rows of the scores ask, columns answer.": (
                mixed(brought(x, W_K, W_Q, W_V), W_O)
            ),
            "Scores are divided by the root of D: a score adds up K products, the width "
            "of one head.": mixed(
                brought(x, W_Q, W_K, W_V, scale=1 / math.sqrt(3)), W_O
            ),
            "The weights add up over those who ask: the softmax belongs over j, the last "
            "axis.": scores.softmax(dim=-2) @ (x @ W_V[0].T) @ W_O[0].T,
            "W_O is missing: what the heads bring is returned as it is.": torch.cat(
                brought(x, W_Q, W_K, W_V), dim=-1
            ),
        },
    )


@case("07_self_attention", "q2")
def check_two_heads(self_attention):  # 2 points
    x = numbers(2, 3, 8)
    W_Q, W_K, W_V = numbers(3, 2, 4, 8, seed=1) / 2
    W_O = numbers(2, 8, 4, seed=2)
    heads = brought(x, W_Q, W_K, W_V)
    (all_at_once,) = brought(x, *(W.flatten(0, 1)[None] for W in (W_Q, W_K, W_V)))
    expect(
        self_attention(x, W_Q, W_K, W_V, W_O),
        mixed(heads, W_O),
        otherwise="With two heads the outputs are wrong: add up W_O[h] times what head h "
        "brings.",
        mistakes={
            "Scores are not scaled: divide by the root of K.": mixed(
                brought(x, W_Q, W_K, W_V, scale=1.0), W_O
            ),
            "All heads share one softmax: each has weights of its own, or it is one "
            "wide head.": mixed(all_at_once.chunk(2, dim=-1), W_O),
            "Only the last head is heard: add to the output, do not replace it.": (
                heads[-1] @ W_O[-1].T
            ),
            "The contributions of the heads are averaged: add them up.": (
                mixed(heads, W_O) / 2
            ),
            "The slices of W_O are mixed up: a reshape of H D K to D rows tears them "
            "apart. Head h goes through W_O[h].": (
                torch.cat(heads, dim=-1) @ W_O.reshape(8, 8).T
            ),
        },
    )
