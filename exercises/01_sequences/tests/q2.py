"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("01_sequences", "q2")
def check_mean_by_hand(masked_mean):  # 2 points
    states = torch.tensor(
        [[[1.0, 10.0], [3.0, 30.0], [9.0, 9.0], [9.0, 9.0]], [[2.0, 4.0]] * 4]
    )
    mask = torch.tensor([[True, True, False, False], [True, False, False, False]])
    real = mask[..., None] * states
    expect(
        masked_mean(states, mask),
        torch.tensor([[2.0, 20.0], [2.0, 4.0]]),
        otherwise="The means are wrong: sum over real positions, divided by how many "
        "there are in the row.",
        mistakes={
            "Padding is averaged too: the mask is not used.": states.mean(dim=1),
            "The sum is right, but it is divided by S: divide by the number of real "
            "positions.": real.sum(dim=1) / 4,
            "Every row is divided by the real positions of the whole batch: each row "
            "has its own number.": real.sum(dim=1) / 3,
            "This is the sum: a mean is divided by the number of real positions.": (
                real.sum(dim=1)
            ),
            "The features are averaged, not the positions: S is axis 1.": states.mean(
                dim=2
            ),
            "The mask looks inverted: this is the mean over the padding.": (
                (~mask[..., None] * states).sum(dim=1) / (~mask).sum(1, keepdim=True)
            ),
        },
    )
