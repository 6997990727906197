"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("06_attention", "q1")
def check_weights_by_hand(masked_softmax):  # 2 points
    scores = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 0.0, 0.5]]])
    mask = torch.tensor([[[True, True, False], [True, False, True]]])
    plain = scores.softmax(dim=-1)
    expect(
        masked_softmax(scores, mask),
        softmax_of(scores, mask),
        otherwise="The weights are wrong: fill hidden scores with minus infinity, "
        "then take the softmax over the keys.",
        mistakes={
            "The mask looks inverted: True means that a query may look.": softmax_of(
                scores, ~mask
            ),
            "The mask changes nothing: hidden keys still get a weight.": plain,
            "The weights of a query do not add up to 1: hide the scores before the "
            "softmax, not the weights after it.": plain * mask,
            "Hidden keys still get a weight: a score of 0 is a score like any other, "
            "minus infinity is not.": (scores * mask).softmax(dim=-1),
            "The weights add up over the queries: the softmax belongs over the keys, "
            "the last axis.": scores.masked_fill(~mask, -math.inf)
            .softmax(dim=-2)
            .nan_to_num(),
        },
    )


@case("06_attention", "q1")
def check_large_scores(masked_softmax):  # 1 point
    scores = torch.tensor([[[1000.0, 999.0, -1000.0]]])
    mask = torch.tensor([[[True, True, False]]])
    weights = masked_softmax(scores, mask)
    assert bool(torch.isfinite(weights).all()), (
        "Large scores overflow: exp(1000) is infinite. Subtract the maximum first, or "
        "use torch's softmax, which does."
    )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="Weights of large scores are wrong: only differences of scores count.",
    )
    scores = torch.tensor([[[-30_000.0, 0.0, -30_001.0]]])
    mask = torch.tensor([[[True, False, True]]])
    weights = masked_softmax(scores, mask)
    if isinstance(weights, torch.Tensor) and weights.shape == (1, 1, 3):
        assert not float(weights[0, 0, 1]) > 0, (
            "Where all scores are very low, a hidden key wins: its score must be lower "
            "than any other, and only minus infinity always is."
        )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="Weights of very low scores are wrong.",
    )


@case("06_attention", "q1")
def check_one_mask_for_all_queries(masked_softmax):  # 1 point
    scores = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 0.0, 0.5]]])
    mask = torch.tensor([[[True, False, True]]])
    try:
        weights = masked_softmax(scores, mask)
    except (IndexError, RuntimeError):
        weights = None
    assert weights is not None, (
        "A mask with one row should count for every query: masked_fill and where "
        "broadcast, an index such as scores[~mask] does not."
    )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="A mask with one row should hide the same keys from every query.",
    )
