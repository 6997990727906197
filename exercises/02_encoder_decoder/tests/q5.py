"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
points = None

import itertools

import torch

from seq2seq_lib.grading.expect import expect, same

NEVER = -1e4


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def filled(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def factor(letter, previous, x, t, before):
    at = x[min(t, len(x) - 1)]
    return (letter[at] + previous[before]).log_softmax(dim=0)


def factors(letter, previous, x, y, *, read=None, still=False):
    """log p of every symbol of y, by hand; read and still are for mistakes."""
    read = [1, *y[:-1]] if read is None else read
    steps = enumerate(zip(read, y, strict=True))
    return torch.stack(
        [
            factor(letter, previous, x, 0 if still else t, b)[y_t]
            for t, (b, y_t) in steps
        ]
    )


def speech(letter, previous, x, longest, *, repeat=False, still=False, first=1):
    """The greedy answer by hand, EOS included if it comes."""
    said, before = [], first
    while len(said) < longest and said[-1:] != [2]:
        scores = factor(letter, previous, x, 0 if still else len(said), before)
        said.append(int(scores.argmax()))
        before = first if repeat else said[-1]
    return said


def tables(letters, sounds, seed):
    """Random tables that say one sound for each letter, and the end for EOS."""
    letter = numbers(letters, sounds, seed=seed) * 2
    previous = numbers(sounds, sounds, seed=seed + 1) * 2
    letter[:, :4] = NEVER
    letter[2] = NEVER
    letter[2, 2], letter[2, 4] = 0.0, -50.0
    previous[2, 4] = 100.0  # whoever reads EOS goes on
    previous[:, 2] = 0.0
    return letter, previous


def brute_force(p, length):
    """What has ended by some length, and what is going, over all answers."""
    sounds = [i for i in range(len(p)) if i > 3]
    ended = going = 0.0
    for size in range(length + 1):
        for said in itertools.product(sounds, repeat=size):
            path = [1, *said]
            reached = 1.0
            for before, after in itertools.pairwise(path):
                reached *= p[before, after].item()
            ended += reached * p[path[-1], 2].item()
            going += reached * (1 - p[path[-1], 2].item()) * (size == length)
    return ended, going


def masses_of(p, length, *, start=None, absorb=True, exactly=False):
    reached = torch.eye(len(p))[1] if start is None else start
    ended = 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended = reached[2].item() + (0.0 if exactly else ended)
        if absorb:
            reached = reached * (torch.arange(len(p)) != 2)
    return ended, (reached.sum() - reached[2]).item()


def babbler():
    p = torch.zeros(6, 6)
    p[1, [4, 5, 2]] = torch.tensor([0.5, 0.25, 0.25])
    p[4, [4, 5, 2]] = torch.tensor([0.25, 0.5, 0.25])
    p[5, [4, 5, 2]] = torch.tensor([0.2, 0.2, 0.6])
    p[2, [4, 5, 2]] = torch.tensor([0.25, 0.25, 0.5])
    return p


@case("02_encoder_decoder", "q5")
def check_masses_of_nothing(masses):  # 1 point
    answer = masses(babbler(), 0)
    assert isinstance(answer, tuple | list), "Return two numbers: ended, still going."
    assert len(answer) == 2, f"Return two numbers, not {len(answer)}."
    start = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.5, 0.5])
    expect(
        tuple(map(float, answer)),
        (0.25, 0.75),
        otherwise="With no sound at all: BOS is followed by EOS with 1/4, and by a sound "
        "with 3/4.",
        mistakes={
            "One step is missing: `length` sounds and their end take `length` + 1 "
            "steps.": (0.0, 1.0),
            "The two numbers are swapped: first what has ended.": (0.75, 0.25),
            "The babbler does not start behind BOS.": masses_of(
                babbler(), 0, start=start
            ),
            "What has ended is still going too: take it out.": (0.25, 1.0),
            "The table is read by columns: row i says what follows symbol i.": (
                0.0,
                0.0,
            ),
        },
    )


@case("02_encoder_decoder", "q5")
def check_masses_by_hand(masses):  # 2 points
    p = babbler()
    expect(
        tuple(map(float, masses(p, 3))),
        brute_force(p, 3),
        otherwise="With at most three sounds the two probabilities are wrong.",
        mistakes={
            "What ends with exactly `length` sounds is returned: add up all that ended "
            "before.": masses_of(p, 3, exactly=True),
            "Ended answers go on behind EOS, and end again: nothing follows EOS.": (
                masses_of(p, 3, absorb=False)
            ),
            "One sound too many: stop after `length` + 1 steps.": masses_of(p, 4),
        },
    )
