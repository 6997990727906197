"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
points = None

import torch

from seq2seq_lib.grading.expect import expect, same
from seq2seq_lib.metrics import edit_distance as right_distance


def filled(rows, width=None, *, left=False, fill=0):
    width = width or max(map(len, rows))
    blanks = [[fill] * (width - len(row)) for row in rows]
    return torch.tensor(
        [b + r if left else r + b for r, b in zip(rows, blanks, strict=True)]
    )


def random_rows(random, *, rows=4, longest=6):
    lengths = torch.randint(1, longest, (rows,), generator=random).tolist()
    lengths[rows // 2] = longest
    return [torch.randint(3, 30, (n,), generator=random).tolist() for n in lengths]


@case("01_sequences", "q4")
def check_edits_by_hand(edits):  # 2 points
    count = edits("K N IH T".split(), "N AY T".split())
    assert type(count) is int, (
        f"Expected a whole number, got {type(count).__name__}: convert it with int()."
    )
    expect(
        count,
        2,
        otherwise="K N IH T into N AY T takes two edits: delete K, replace IH.",
        mistakes={
            "Symbols are compared place by place: one deletion moves all that follow, "
            "and should cost 1.": 4,
            "A replacement costs 2 here: it is one edit.": 3,
        },
    )
    expect(
        edits(["A", "B"], ["B", "A"]),
        2,
        otherwise="A B into B A takes two edits.",
        mistakes={
            "Swapping two neighbours counts as one edit: here it takes two.": 1,
            "The order is ignored: A B and B A are different words.": 0,
        },
    )


@case("01_sequences", "q4")
def check_edits_of_nothing(edits):  # 1 point
    expect(
        edits([], ["A", "B", "C"]),
        3,
        otherwise="Nothing into three symbols takes three insertions.",
        mistakes={
            "The border of the table is wrong: to say nothing is not free of mistakes, "
            "every missing symbol is an insertion.": 0,
        },
    )
    expect(
        edits(["A", "B", "C"], []),
        3,
        otherwise="Three symbols into nothing takes three deletions.",
        mistakes={
            "Deletions are free: every symbol too many is an edit.": 0,
        },
    )
