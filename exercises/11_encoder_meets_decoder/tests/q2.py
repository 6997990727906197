"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
points = None

import math

import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def real(lengths, width):
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def looked(q, k, v, mask, heads, *, cut=split, join=merge, **options):
    mask = None if mask is None else mask[:, None, None]
    q, k, v = (cut(x, heads) for x in (q, k, v))
    return join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options))


def causal_pass(x, W_Q, W_K, W_V, **options):
    q, k, v = (x @ W.T for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, **options)


def cache_of(x, W_K, W_V):
    return torch.stack([x @ W_K.T, x @ W_V.T], dim=2).transpose(0, 1)


@case("11_encoder_meets_decoder", "q2")
def check_cross_attention(cross_attention):  # 3 points
    x, states, mask = numbers(2, 2, 6), numbers(2, 4, 5, seed=1), real([4, 2], 4)
    W_Q, W_K, W_V = numbers(6, 6, seed=2), numbers(6, 5, seed=3), numbers(6, 5, seed=4)
    q, k, v = x @ W_Q.T, states @ W_K.T, states @ W_V.T
    try:
        answer = cross_attention(x, states, mask, W_Q, W_K, W_V, 3)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: W_Q takes the decoder's x, of width D, and W_K and W_V "
            f"take the memory's states, of width M. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        looked(q, k, v, mask, 3),
        otherwise="What the heads see is wrong: slices of width K, scores q · k / √K, "
        "padding hidden, averages of the values side by side.",
        mistakes={
            "Scores look mis-scaled: divide by the square root of the head width K.": (
                looked(q, k, v, mask, 3, scale=1.0)
            ),
            "Scores are divided by √D: a head adds up K products, so divide by √K.": (
                looked(q, k, v, mask, 3, scale=6**-0.5)
            ),
            "The mask is not used: padding of the source is seen.": looked(
                q, k, v, None, 3
            ),
            "The mask hides real positions of the source and shows padding: True means "
            "real.": looked(q, k, v, ~mask, 3).nan_to_num(),
            "There is one head only: cut queries, keys and values into slices.": looked(
                q, k, v, mask, 1
            ),
            "A head takes every H-th feature: it should take K neighbours.": looked(
                q,
                k,
                v,
                mask,
                3,
                cut=lambda y, h: y.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
                join=lambda y: y.permute(0, 2, 3, 1).flatten(2),
            ),
            "Positions get into each other's heads: split D into H and K first, then "
            "move H forward. A view straight to B H T K mixes them.": looked(
                q,
                k,
                v,
                mask,
                3,
                cut=lambda y, h: y.reshape(len(y), h, y.shape[1], -1),
            ),
            "The heads are right but come back mixed: move H next to K before they are "
            "put side by side.": looked(
                q, k, v, mask, 3, join=lambda y: y.reshape(2, 2, 6)
            ),
            "The keys are averaged: W_V m is what is taken.": looked(q, k, k, mask, 3),
            "W_K and W_V are swapped: keys are compared, values are averaged.": looked(
                q, v, k, mask, 3
            ),
        },
    )
