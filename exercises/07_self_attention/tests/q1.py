"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("07_self_attention", "q1")
def check_split_by_hand(split_heads):  # 2 points
    x = torch.arange(72.0).view(3, 4, 6)
    expect(
        split_heads(x, 2),
        slices(x, 2),
        otherwise="The slices are wrong: head h gets the features from h·K up to "
        "(h + 1)·K of every position.",
        mistakes={
            "One position was cut into several: view counts on through positions and "
            "features. Cut the last axis alone, then swap axes.": x.view(3, 2, 4, 3),
            "A head got every H-th feature: its slice should be K neighbours, so the "
            "heads come first when the last axis is cut.": (
                x.view(3, 4, 3, 2).permute(0, 3, 1, 2)
            ),
            "The heads stand behind the positions: B H T K, not B T H K.": (
                x.view(3, 4, 2, 3)
            ),
        },
    )


@case("07_self_attention", "q1")
def check_merge_by_hand(merge_heads):  # 2 points
    x = torch.arange(72.0).view(3, 2, 4, 3)
    try:
        merged = merge_heads(x)
    except RuntimeError as error:
        is_view = "view" in str(error) and "stride" in str(error)
        raise AssertionError(
            "view cannot join axes that transpose has moved apart in memory: reshape "
            "and flatten copy where they must."
            if is_view
            else f"merge_heads stops at B H T K. PyTorch says: {error}"
        ) from error
    expect(
        merged,
        torch.cat(x.unbind(dim=1), dim=-1),
        otherwise="The merged features are wrong: all of the first head, then all of "
        "the second.",
        mistakes={
            "Positions were merged with heads: bring the heads next to their features "
            "before you flatten.": x.reshape(3, 4, 6),
            "The features of the heads alternate: put whole slices side by side.": (
                x.permute(0, 2, 3, 1).flatten(2)
            ),
            "The heads are added up: put them side by side, or which was which is "
            "lost.": x.sum(dim=1),
            "The heads are averaged: put them side by side.": x.mean(dim=1),
        },
    )
