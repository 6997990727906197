"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
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


@case("01_sequences", "q5")
def check_rate_by_hand(error_rate):  # 2 points
    outputs = [["N", "AY", "T"], ["R", "EH", "D"], ["A"]]
    references = [
        [["N", "AY", "T"]],
        [["R", "IY", "D"], ["R", "EH", "D"]],
        [["A", "B", "C", "D"]],
    ]
    expect(
        error_rate(outputs, references),
        3 / 10,
        otherwise="Three edits over ten sounds is 0.3.",
        mistakes={
            "The mean of the words' rates is taken: long words should count for more, "
            "so add up edits and sounds first.": 0.25,
            "Only the first reference counts here: any of them is right.": 4 / 10,
            "The edits are divided by the sounds of the outputs: divide by those of "
            "the references.": 3 / 7,
            "This is the share of wrong words: count edits and sounds.": 1 / 3,
            "This is the number of edits: divide by the number of sounds.": 3.0,
            "The sounds of all references are counted: only the nearest one of each "
            "word was wanted.": 3 / 13,
            "This is a percentage: expected a share.": 30.0,
        },
    )
