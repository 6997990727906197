"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
points = None

import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect

STATES = torch.tensor(
    [
        [[1.0, 7.0, 9.0, 15.0], [0.0, 6.0, 6.0, 8.0], [2.0, 2.0, 6.0, 6.0]],
        [[3.0, 9.0, 1.0, 3.0], [4.0, 8.0, 5.0, 11.0], [-1.0, 5.0, 2.0, 0.0]],
    ]
)
WEIGHT = torch.tensor([2.0, 0.5, -1.0, 3.0])
BIAS = torch.tensor([0.5, -1.0, 4.0, 0.0])


def scores_over(x, axes, correction=0):
    variance = x.var(dim=axes, keepdim=True, correction=correction)
    return (x - x.mean(dim=axes, keepdim=True)) / (variance + 1e-5).sqrt()


def several(answer, names):
    wanted = f"Return {len(names)} things, {', '.join(names)}"
    assert isinstance(answer, tuple | list), f"{wanted}: `return first, second`."
    assert len(answer) == len(names), f"{wanted}, not {len(answer)}."
    return answer


def normalized(x):
    return F.layer_norm(x, x.shape[-1:])


def heard(x, W):
    return 2 * (x @ W.T).tanh()


def pre_steps(x, weights):
    for W in weights:
        x = x + heard(normalized(x), W)
    return x


def post_steps(x, weights):
    for W in weights:
        x = normalized(x + heard(x, W))
    return x


def stacked(step, x, weights):
    for W in weights:
        x = step(x, W)
    return x


X = torch.tensor([[[3.0, -1.0, 0.5], [0.0, 2.0, -4.0]]])
LAYERS = torch.tensor(
    [
        [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.7, 0.2, 0.2]],
        [[-0.1, 0.6, 0.3], [0.8, -0.3, 0.0], [0.2, 0.1, -0.5]],
    ]
)


def by_autograd(x, weight, upstream, epsilon=1e-5):
    """PyTorch's own three gradients."""
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)
    return torch.autograd.grad(y, (x, weight, bias), upstream)


UPSTREAM = torch.tensor(
    [
        [[1.0, 0.0, -2.0, 0.5], [0.0, 3.0, 1.0, -1.0], [2.0, 1.0, 0.0, 4.0]],
        [[-1.0, 0.5, 0.0, 2.0], [1.0, 1.0, -3.0, 0.0], [0.0, -2.0, 1.5, 1.0]],
    ]
)
GRADIENTS = ("the gradients of x", "of the weight", "of the bias")


@case("08_layer_norm", "q2")
def check_statistics_by_hand(batch_statistics):  # 3 points
    x = torch.tensor(
        [
            [[1.0, 10.0], [2.0, 20.0], [6.0, 60.0]],
            [[7.0, -2.0], [90.0, 30.0], [50.0, -40.0]],
        ]
    )
    mask = torch.tensor([[True, True, True], [True, False, False]])
    # real are 1, 2, 6, 7 and 10, 20, 60, −2
    mean, variance = torch.tensor([4.0, 22.0]), torch.tensor([6.5, 542.0])
    cleared, real = x * mask[..., None], x[mask]
    answer = several(
        batch_statistics(x, mask), ("the mean", "the variance of each feature")
    )
    by_row = cleared.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    expect(
        answer[0],
        mean,
        otherwise="The mean is wrong: for each feature, over all real positions.",
        mistakes={
            "Padding has a part in the mean: the mask is not used.": x.mean(dim=(0, 1)),
            "Padding is cleared but counted: divide by the number of real positions.": (
                cleared.mean(dim=(0, 1))
            ),
            "The mask looks inverted: True is a real position.": x[~mask].mean(dim=0),
            "The means of the rows are averaged: then a position of a short row counts "
            "more than one of a long row.": by_row.mean(dim=0),
            "Every row has its own mean: batch norm has one for all rows.": by_row,
            "There is one mean for all features: batch norm has one for each.": (
                real.mean()
            ),
            "Each position is averaged over its features: that is layer norm.": (
                real.mean(dim=-1)
            ),
        },
    )
    expect(
        answer[1],
        variance,
        otherwise="The variance is wrong: the mean of the squared differences from the "
        "mean, over all real positions.",
        mistakes={
            "The variance is divided by the number of positions less one: divide by all "
            "real positions.": real.var(dim=0),
            "This is the standard deviation: its square is the variance.": variance.sqrt(),
            "Padding is back in the variance: cleared to 0 it still differs from the "
            "mean. Clear the squares.": (
                (cleared - mean).square().sum(dim=(0, 1)) / mask.sum()
            ),
            "The mean leaves padding out, the variance does not: use the mask in both.": (
                (x - mean).square().mean(dim=(0, 1))
            ),
            "The variance of all positions, real or not: use the mask here too.": (
                x.var(dim=(0, 1), correction=0)
            ),
            "The squares of real positions are divided by the number of all positions.": (
                ((x - mean).square() * mask[..., None]).mean(dim=(0, 1))
            ),
            "The mean is not subtracted before squaring.": real.square().mean(dim=0),
        },
    )
