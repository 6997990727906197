"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
points = None

import math

import torch

from seq2seq_lib.grading.expect import expect


def softmax_of(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def raises_value_error(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False


@case("06_attention", "q2")
def check_attention_weights(attention):  # 2 points
    query = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 2.0]]])
    key = torch.eye(4)[None, :3] * torch.tensor([1.0, 2.0, -1.0])[:, None]
    mask = torch.tensor([[[True, True, False], [True, True, True]]])
    answer = attention(query, key, torch.ones(1, 3, 4), mask)
    assert isinstance(answer, tuple | list), (
        "Return two things, the averages and the weights: `return averages, weights`."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    scores = query @ key.mT
    expect(
        answer[1],
        softmax_of(scores / 2, mask),
        otherwise="The weights are wrong: softmax over the keys of QKᵀ/√K, masked.",
        mistakes={
            "Scores look mis-scaled: divide by the square root of the width.": (
                softmax_of(scores, mask)
            ),
            "Scores are divided by the width itself: take its square root.": (
                softmax_of(scores / 4, mask)
            ),
            "Scores are divided by the root of the number of keys: it is the width of "
            "a key that makes dot products grow.": softmax_of(
                scores / math.sqrt(3), mask
            ),
            "The mask is not used: hidden keys get a weight.": (scores / 2).softmax(-1),
            "The first thing returned should be the averages, the second the weights.": (
                softmax_of(scores / 2, mask) @ torch.ones(1, 3, 4)
            ),
        },
    )


@case("06_attention", "q2")
def check_attention_averages(attention):  # 2 points
    query = torch.tensor([[[4.0, 0.0]]])
    key = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    value = torch.tensor([[[10.0, 0.0], [0.0, 20.0]]])
    mask = torch.ones(1, 1, 2, dtype=torch.bool)
    weights = softmax_of(query @ key.mT / math.sqrt(2), mask)
    averages, _ = attention(query, key, value, mask)
    expect(
        averages,
        weights @ value,
        otherwise="The averages are wrong: multiply the weights by the values.",
        mistakes={
            "The keys are averaged: keys decide where to look, values are what is "
            "taken.": weights @ key,
            "The values are added up without their weights.": value.sum(
                dim=1, keepdim=True
            ),
            "Only the value with the largest weight is taken: an average needs all.": (
                value[:, :1]
            ),
        },
    )
