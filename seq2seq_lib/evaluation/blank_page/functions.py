"""Functions of chapters 1 and 4: the edit distance and the masked loss."""

import torch
from torch import Tensor

from seq2seq_lib.evaluation.blank_page.entry import Entry, of_function
from seq2seq_lib.metrics import edit_distance
from seq2seq_lib.seeds import generator
from seq2seq_lib.training.loss import cross_entropy


def _distance(first: list[str], second: list[str], *, replace: int, rest: int) -> int:
    """The cheapest way from one to the other, at other prices."""
    row = [rest * place for place in range(len(second) + 1)]
    for i, left in enumerate(first, start=1):
        before, row = row, [rest * i]
        for j, right in enumerate(second, start=1):
            replaced = before[j - 1] + (replace if left != right else 0)
            row.append(min(replaced, before[j] + rest, row[j - 1] + rest))
    return row[-1]


def _side_by_side(first: list[str], second: list[str]) -> int:
    different = sum(left != right for left, right in zip(first, second, strict=False))
    return different + abs(len(first) - len(second))


def _never_equal(first: list[str], second: list[str]) -> int:
    return max(len(first), len(second))


def _loss(
    log_probabilities: Tensor, target: Tensor, mask: Tensor, *, mistake: str
) -> Tensor:
    right = log_probabilities.gather(-1, target[..., None])[..., 0]  # B T
    if mistake == "padding":
        return -right.mean()
    total = -(right * mask).sum()
    return {
        "all": total / mask.numel(),
        "sum": total,
        "sign": -total / mask.sum(),
        "rows": (-(right * mask).sum(1) / mask.sum(1)).mean(),
        "batch": total / len(mask),
        "inverted": -(right * ~mask).sum() / (~mask).sum(),
        "probability": -(right.exp() * mask).sum() / mask.sum(),
    }[mistake]


_RANDOM = generator(4)
_TARGET = torch.tensor([[4, 3, 5, 2], [5, 2, 0, 0], [3, 4, 2, 0]])
_LOSS_CALLS = {
    "with padding": (
        torch.randn(3, 4, 6, generator=_RANDOM).log_softmax(-1),
        _TARGET,
        _TARGET != 0,
    )
}

FUNCTIONS = {
    "edit_distance": Entry(
        right=edit_distance,
        trial=of_function(
            edit_distance,
            {
                "equal": (["N", "AY", "T"], ["N", "AY", "T"]),
                "one replaced": (["N", "AY", "T"], ["N", "IH", "T"]),
                "one inserted": (["N", "AY"], ["K", "N", "AY"]),
                "two edits": (["N", "AY", "T"], ["K", "N", "IH", "T"]),
                "against nothing": (["T", "UW"], []),
                "of letters": (list("kitten"), list("sitting")),
            },
        ),
        mistakes={
            "symbols are compared place by place only. After an insertion all that "
            "follows is shifted: take the cheapest of replacing, inserting and "
            "deleting.": _side_by_side,
            "a replacement costs 2, as a deletion and an insertion. It should cost 1: "
            "look at the diagonal too.": lambda a, b: _distance(
                list(a), list(b), replace=2, rest=1
            ),
            "equal symbols cost something too. Add 1 on the diagonal only if they "
            "differ.": lambda a, b: _never_equal(list(a), list(b)),
            "the result is 1 too large.": lambda a, b: edit_distance(a, b) + 1,
            "the result is divided by the length: that is an error rate, the distance "
            "is a whole number.": lambda a, b: edit_distance(a, b) / max(1, len(b)),
        },
        parts=("distance",),
    ),
    "masked_loss": Entry(
        right=cross_entropy,
        trial=of_function(cross_entropy, _LOSS_CALLS),
        mistakes={
            message: lambda *arguments, mistake=mistake: _loss(
                *arguments, mistake=mistake
            )
            for mistake, message in {
                "padding": "padding is counted. Leave the positions out where the "
                "mask is False.",
                "all": "padding is counted in the denominator. Divide by the number "
                "of real symbols, mask.sum().",
                "sum": "it is the sum. Divide by the number of real symbols, "
                "mask.sum().",
                "sign": "the sign is wrong. Log-probabilities are negative, and a loss "
                "is positive.",
                "rows": "it is the mean of the rows' means, where a short word counts "
                "as much as a long one. Divide the sum over all symbols once.",
                "batch": "it is divided by the number of rows. Divide by the number of "
                "real symbols, mask.sum().",
                "inverted": "the mask is inverted. True stands at the real symbols.",
                "probability": "probabilities are averaged, not log-probabilities.",
            }.items()
        },
        parts=("loss",),
    ),
}
