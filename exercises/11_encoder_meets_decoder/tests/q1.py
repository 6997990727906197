"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("11_encoder_meets_decoder", "q1")
def check_encoder_padding(four_masks):  # 1 point
    source, target = real([4, 2], 4), real([2, 3], 3)
    answer = four_masks(source, target)
    assert isinstance(answer, tuple | list), "Return four masks, one after the other."
    assert len(answer) == 4, f"Return four masks, not {len(answer)}."
    columns = source[:, None].expand(2, 4, 4)
    rows = source[:, :, None].expand(2, 4, 4)
    expect(
        answer[0],
        columns,
        otherwise="The mask of encoder padding is wrong: True where the column is real.",
        mistakes={
            "The masks look inverted: True means that one may look.": ~columns,
            "The rows of padding are hidden, not the columns: padding may look, it "
            "must not be looked at.": rows,
            "Rows and columns of padding are hidden: a row that may look nowhere has a "
            "softmax of nothing, which is no number.": rows & columns,
            "The encoder's mask is a triangle: an encoder may look both ways.": (
                columns.tril()
            ),
        },
    )


@case("11_encoder_meets_decoder", "q1")
def check_causal(four_masks):  # 1 point
    _, causal, _, _ = four_masks(real([4, 2], 4), real([2, 3], 3))
    right = torch.ones(3, 3).tril().bool()
    expect(
        causal,
        right,
        otherwise="The causal mask is wrong: position t looks at 0 … t, in T rows and "
        "T columns.",
        mistakes={
            "The triangle is upside down: the decoder sees the future, and not the "
            "past.": right.T,
            "The diagonal is missing: a position may look at itself, and the first one "
            "has nothing else.": right.tril(-1),
            "The triangle has the size of the source: it is the decoder that must not "
            "see its future.": torch.ones(4, 4).tril().bool(),
        },
    )


@case("11_encoder_meets_decoder", "q1")
def check_target_padding(four_masks):  # 1 point
    target = real([2, 3], 3)
    _, _, padding, _ = four_masks(real([4, 2], 4), target)
    right = target[:, None].expand(2, 3, 3)
    expect(
        padding,
        right,
        otherwise="The mask of target padding is wrong: True where the column is real.",
        mistakes={
            "The mask of target padding is a triangle too: here each mask hides its "
            "own, and they are joined where they are used.": right.tril(),
        },
    )


@case("11_encoder_meets_decoder", "q1")
def check_cross(four_masks):  # 1 point
    source, target = real([4, 2], 4), real([2, 3], 3)
    _, _, _, cross = four_masks(source, target)
    right = source[:, None].expand(2, 3, 4)
    expect(
        cross,
        right,
        otherwise="The cross mask is wrong: target positions look at real source "
        "positions.",
        mistakes={
            "The cross mask hides padding of the target: its columns are the source, "
            "and that is where padding must not be seen.": (
                target[:, :, None].expand(2, 3, 4)
            ),
            "The cross mask is transposed: the decoder looks, so its positions are the "
            "rows, B T S.": right.mT,
            "The cross mask is a triangle: the whole source is known, and every step "
            "may look at all of it.": right.tril(),
        },
    )
