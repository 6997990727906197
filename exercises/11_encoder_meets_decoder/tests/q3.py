"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("11_encoder_meets_decoder", "q3")
def check_first_step(cached_step):  # 1 point
    x, (W_Q, W_K, W_V) = numbers(2, 3), numbers(3, 3, 3, seed=1)
    try:
        answer = cached_step(x, None, W_Q, W_K, W_V)
    except (TypeError, RuntimeError) as error:
        raise AssertionError(
            "The first step fails: before it the past is None, and the cache is the new "
            f"key and value alone. Python says: {error}"
        ) from error
    assert isinstance(answer, tuple | list), (
        "Return two things: what was seen, and the cache."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    right = cache_of(x[:, None], W_K, W_V)
    expect(
        answer[1],
        right,
        otherwise="The first cache is wrong: one position, R rows, key and value.",
        mistakes={
            "Key and value are swapped in the cache: the key comes first.": right.flip(
                2
            ),
            "The cache holds x: keep keys and values, or every step must project the "
            "whole past again.": torch.stack([x, x], dim=1)[None],
        },
    )
    expect(
        answer[0],
        right[0, :, 1],
        otherwise="At the first step there is one position to see: its own value.",
    )


@case("11_encoder_meets_decoder", "q3")
def check_cache_grows(cached_step):  # 1 point
    x, (W_Q, W_K, W_V) = numbers(2, 4, 3), numbers(3, 3, 3, seed=1)
    cache = cache_of(x, W_K, W_V)
    answer = cached_step(x[:, 3], cache[:3], W_Q, W_K, W_V)[1]
    expect(
        answer,
        cache,
        otherwise="The cache is wrong: the past as it was, then the new position.",
        mistakes={
            "The cache is as short as before: append the new key and value.": cache[:3],
            "The cache forgets the past: only the new position is left.": cache[3:],
            "The new position stands in front: the cache is oldest first.": torch.cat(
                [cache[3:], cache[:3]]
            ),
        },
    )


@case("11_encoder_meets_decoder", "q3")
def check_steps_equal_the_full_pass(cached_step):  # 2 points
    x, (W_Q, W_K, W_V) = numbers(2, 4, 3), numbers(3, 3, 3, seed=1)
    cache = cache_of(x, W_K, W_V)
    right = causal_pass(x, W_Q, W_K, W_V)[:, 3]
    q, (k, v) = x[:, 3] @ W_Q.T, cache.unbind(2)
    scores = torch.einsum("rd,urd->ru", q, k) / math.sqrt(3)
    everyone = (q @ k.flatten(0, 1).T / math.sqrt(3)).softmax(dim=-1)
    over_rows = scores.softmax(dim=0)
    expect(
        cached_step(x[:, 3], cache[:3], W_Q, W_K, W_V)[0],
        right,
        otherwise="The step differs from the full causal pass.",
        mistakes={
            "The new position does not look at itself: append first, then look.": (
                torch.einsum("ru,urd->rd", scores[:, :3].softmax(dim=-1), v[:3])
            ),
            "The step sees only the new position: the query should meet all keys of the "
            "cache.": v[3],
            "The scores of the step are not scaled: divide by √D, as the full pass "
            "does.": causal_pass(x, W_Q, W_K, W_V, scale=1.0)[:, 3],
            "Rows look at each other's past: each row has keys of its own.": (
                everyone @ v.flatten(0, 1)
            ),
            "The weights add up over the rows: the softmax belongs over the positions.": (
                torch.einsum("ru,urd->rd", over_rows, v)
            ),
        },
    )
