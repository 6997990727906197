"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
points = None

import torch

from seq2seq_lib.grading.expect import expect
from seq2seq_lib.metrics import edit_distance as distance


def one_number(answer):
    if isinstance(answer, torch.Tensor):
        assert answer.numel() == 1, (
            f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
        )
    return float(answer)


def numbers(*shape):
    return torch.linspace(0, 50, torch.Size(shape).numel()).sin().view(shape)


def states(c, read, W, b, E):
    found = [torch.tanh(c @ W.T + b)]
    for t in range(read.shape[1]):
        e = E[read[:, t]]
        found.append(torch.tanh(e + found[-1].roll(1, dims=-1)))
    return torch.stack(found, dim=1)


def walked(table, gold, own, *, first=1):
    rows = []
    for symbols, chosen in zip(gold.tolist(), own.tolist(), strict=True):
        read = symbols[:first]
        for symbol, mine in zip(symbols[first:], chosen[first:], strict=True):
            last = read[-1] if read else symbols[0]
            read.append(int(table[last].argmax()) if mine else symbol)
        rows.append(read)
    return torch.tensor(rows)


def best_of(prefix, answer):
    return min(
        distance([*prefix, *answer[said:]], answer) for said in range(len(answer) + 1)
    )


def right_after(prefix, answer):
    best = best_of(prefix, answer)
    found = [v for v in set(answer) if best_of([*prefix, v], answer) == best]
    return sorted(found + ["<eos>"] * (distance(prefix, answer) == best))


def as_list(answer):
    assert isinstance(answer, list), (
        f"Return a list of symbols, not a {type(answer).__name__}."
    )
    return sorted(answer)


@case("04_rnn_seq2seq", "q4")
def check_before_anything(right_next):  # 1 point
    expect(
        as_list(right_next([], ["K", "AE", "T"])),
        ["K"],
        otherwise="Before anything is said, only the first symbol is right.",
        mistakes={
            "The empty beginning is left out: before anything is said, K is right.": [
                "AE"
            ],
            "You return the last symbol of the nearest beginning, which was said: right "
            "is the one behind it.": ["T"],
        },
    )


@case("04_rnn_seq2seq", "q4")
def check_the_end(right_next):  # 1 point
    expect(
        as_list(right_next(["K", "EH", "T"], ["K", "AE", "T"])),
        ["<eos>"],
        otherwise="After K EH T only the end is right: K AE T is one edit away.",
        mistakes={
            "The whole answer is a beginning too, and END stands behind it.": [
                "AE",
                "T",
            ],
            "Behind the whole answer stands END: you return nothing.": [],
        },
    )


@case("04_rnn_seq2seq", "q4")
def check_after_one_error(right_next):  # 2 points
    # K T is one edit away from K, from K AE and from K AE T
    expect(
        as_list(right_next(["K", "T"], ["K", "AE", "T"])),
        ["<eos>", "AE", "T"],
        otherwise="After K T, all of AE, T and END are right if the answer is K AE T: T "
        "may have come too early, in place of AE, or behind an AE left out.",
        mistakes={
            "The prefix may stand at several places. You return what is behind the last "
            "of them only.": ["<eos>"],
            "The prefix may stand at several places. You return what is behind the first "
            "of them only.": ["AE"],
            "You count symbols: after two of them the third. The edit distance may put "
            "the prefix at other places too.": ["T"],
        },
    )
