"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("06_attention", "q3")
def check_additive_by_hand(additive_scores):  # 3 points
    query = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    key = torch.tensor([[[0.5, 0.0], [0.0, 0.5], [1.0, 1.0]]])
    W = torch.tensor([[1.0, 0.5], [0.0, 1.0], [0.5, -1.0]])
    U = torch.tensor([[0.5, -0.5], [1.0, 0.0], [0.0, 2.0]])
    v = torch.tensor([1.0, -2.0, 0.5])
    mixed = (query @ W.T)[:, :, None] + (key @ U.T)[:, None]
    swapped = (query @ U.T)[:, :, None] + (key @ W.T)[:, None]
    expect(
        additive_scores(query, key, W, U, v),
        mixed.tanh() @ v,
        otherwise="The scores are wrong: v · tanh(W q + U k) for every query and key.",
        mistakes={
            "The tanh is missing: without it the query adds the same to every key, and "
            "the softmax forgets it.": mixed @ v,
            "The tanh comes too late: it belongs inside, before the product with v.": (
                (mixed @ v).tanh()
            ),
            "W and U are swapped: W belongs to the query.": swapped.tanh() @ v,
            "The queries should come before the keys: B T S, not B S T.": (
                (mixed.tanh() @ v).mT
            ),
            "v is not used: the hidden layer is added up, not weighted.": (
                mixed.tanh().sum(dim=-1)
            ),
        },
    )
