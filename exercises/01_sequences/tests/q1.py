"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("01_sequences", "q1")
def check_padded_numbers(pad_rows):  # 1 point
    rows = [[5, 6], [7, 8, 9, 4], [3]]
    answer = pad_rows(rows)
    assert isinstance(answer, tuple | list), (
        "Return two things, the numbers and the mask: `return ids, mask`."
    )
    expect(
        answer[0],
        filled(rows),
        otherwise="The numbers are wrong: every row, then PAD up to the longest row.",
        mistakes={
            "Padding stands before the symbols: it belongs at the end of a row.": filled(
                rows, left=True
            ),
            "Long rows are cut: the longest row decides the width, not the first.": (
                torch.tensor([[5, 6], [7, 8], [3, 0]])
            ),
            "Rows are filled with another number than PAD.": filled(rows, fill=-1),
            "The numbers are floating: symbols are whole numbers, as an embedding "
            "needs them.": filled(rows).float(),
            "The rectangle is one column too wide.": filled(rows, 5),
        },
    )


@case("01_sequences", "q1")
def check_padding_mask(pad_rows):  # 1 point
    _, mask = pad_rows([[5, 6], [7, 8, 9, 4], [3]])
    right = filled([[1, 1], [1, 1, 1, 1], [1]]).bool()
    expect(
        mask,
        right,
        otherwise="The mask is wrong: True at real symbols, False at padding.",
        mistakes={
            "The mask is inverted: True means a real symbol.": ~right,
            "The mask holds numbers: expected a boolean tensor.": right.long(),
            "The mask is True everywhere: padding should be False.": torch.ones(
                3, 4, dtype=torch.bool
            ),
        },
    )
