"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("01_sequences", "q3")
def check_what_is_read(read_and_say):  # 2 points
    rows = [[7, 8, 9], [5]]
    answer = read_and_say(rows)
    assert isinstance(answer, tuple | list), (
        "Return two tensors: what is read, what is said."
    )
    assert not same(
        answer, (filled([[7, 8, 9, 2], [5, 2]]), filled([[1, 7, 8, 9], [1, 5]]))
    ), "Read and said are swapped: the first begins with BOS, the second ends with EOS."
    expect(
        answer[0],
        filled([[1, 7, 8, 9], [1, 5]]),
        otherwise="What is read is wrong: BOS, then the sounds, then PAD.",
        mistakes={
            "The decoder reads what it should say, so it learns to repeat: what it "
            "reads comes one step late, behind BOS.": filled([[7, 8, 9, 2], [5, 2]]),
            "EOS is read too: at its last step the decoder reads the last sound, and "
            "there is nothing to say behind EOS.": filled([[1, 7, 8, 9, 2], [1, 5, 2]]),
            "The first thing read is EOS: it should be BOS.": filled(
                [[2, 7, 8, 9], [2, 5]]
            ),
            "The last sound is never read: only EOS has no place in what is read.": (
                filled([[1, 7, 8], [1, 5, 0]])
            ),
        },
    )


@case("01_sequences", "q3")
def check_what_is_said(read_and_say):  # 2 points
    _, said = read_and_say([[7, 8, 9], [5]])
    expect(
        said,
        filled([[7, 8, 9, 2], [5, 2]]),
        otherwise="What is said is wrong: the sounds, then EOS, then PAD.",
        mistakes={
            "EOS stands behind the padding: it belongs right behind the last sound.": (
                torch.tensor([[7, 8, 9, 2], [5, 0, 0, 2]])
            ),
            "EOS is missing: a decoder that never learns to stop will not.": filled(
                [[7, 8, 9, 0], [5, 0, 0, 0]]
            ),
            "BOS is said too: nobody has to say how it begins.": filled(
                [[1, 7, 8, 9, 2], [1, 5, 2]]
            ),
        },
    )
