"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("06_attention", "q4")
def check_regression_by_hand(kernel_regression):  # 2 points
    query = torch.tensor([0.0, 1.5])
    key = torch.tensor([0.0, 1.0, 3.0])
    value = torch.tensor([1.0, 5.0, -2.0])
    far = query[:, None] - key
    expect(
        kernel_regression(query, key, value, 0.8),
        (-(far**2) / 1.28).softmax(dim=-1) @ value,
        otherwise="The predictions are wrong: softmax of −(q − k)²/(2h²) over the keys.",
        mistakes={
            "Far keys get the larger weights: the sign of the exponent is missing.": (
                (far**2 / 1.28).softmax(dim=-1) @ value
            ),
            "The distances are not squared.": (-far.abs() / 1.28).softmax(-1) @ value,
            "The factor 2 below the fraction is missing.": (
                (-(far**2) / 0.64).softmax(dim=-1) @ value
            ),
            "The width is not squared.": (-(far**2) / 1.6).softmax(dim=-1) @ value,
            "The weights do not add up to 1: divide by their sum.": (
                (-(far**2) / 1.28).exp() @ value
            ),
            "The weights add up over the queries: the softmax belongs over the keys.": (
                (-(far**2) / 1.28).softmax(dim=0) @ value
            ),
        },
    )
