"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("11_encoder_meets_decoder", "q4")
def check_pasts_move(reorder):  # 2 points
    past, memory = numbers(10, 9, 2, 2), numbers(3, 4, 2, seed=1)
    rows = torch.tensor([2, 0, 1, 4, 5, 3, 6, 8, 7])
    try:
        answer = reorder(past, memory, rows)
    except IndexError as error:
        raise AssertionError(
            "An index is too large: `rows` are numbers of rows, and the memory has "
            f"fewer sources than there are rows. PyTorch says: {error}"
        ) from error
    assert isinstance(answer, tuple | list), (
        "Return two things: the past, and the memory."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    expect(
        answer[0],
        past[:, rows],
        otherwise="The past is wrong: its second axis, the rows, in the order asked for.",
        mistakes={
            "The past is not reordered: rows go on with the past of another prefix.": (
                past
            ),
            "The time of the past is reordered: rows are its second axis.": past[rows],
            "Rows are sent where they should be fetched: new row i is old row rows[i].": (
                past[:, rows.argsort()]
            ),
        },
    )


@case("11_encoder_meets_decoder", "q4")
def check_a_beam_begins(reorder):  # 1 point
    past, memory = numbers(2, 3, 2, 2), numbers(3, 4, 2, seed=1)
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    pasts, kept = reorder(past, memory, rows)
    expect(
        kept,
        memory,
        otherwise="When a beam begins, every source goes on: the memory stays.",
        mistakes={
            "The memory has a copy for each row: rows of a source share one.": (
                memory[rows]
            ),
            "The source of a row is its number divided by how many rows a source had "
            "before, not by how many it gets.": memory[:2],
            "The number of a row is divided by the number of sources: divide by the "
            "rows of each source, R / B.": memory[:1],
        },
    )
    expect(
        pasts,
        past[:, rows],
        otherwise="When a beam begins, each past is repeated for the rows it gets.",
        mistakes={
            "Every row is kept once in the past, though some are asked for repeatedly.": (
                past
            ),
        },
    )


@case("11_encoder_meets_decoder", "q4")
def check_a_source_is_done(reorder):  # 1 point
    past, memory = numbers(2, 12, 2, 2), numbers(4, 3, 2, seed=1)
    rows = torch.tensor([3, 5, 4, 11, 9, 9])
    _, kept = reorder(past, memory, rows)
    expect(
        kept,
        memory[[1, 3]],
        otherwise="The memory is wrong where some sources are done: keep those that "
        "still have rows, in their order.",
        mistakes={
            "Sources that are done are still in the memory: rows would look at the "
            "source of a neighbour.": memory,
            "The first sources are kept, as many as go on: the rows say which go on.": (
                memory[:2]
            ),
            "The source is the remainder of a row's number: rows of a source stand "
            "together, so divide.": memory[[0, 1, 3]],
        },
    )
