"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("02_encoder_decoder", "q1")
def check_one_step(look_up):  # 2 points
    letter, previous = numbers(6, 4), numbers(4, 4, seed=1)
    x_t, before = torch.tensor([5, 2, 2]), torch.tensor([1, 3, 0])
    scores = letter[x_t] + previous[before]
    right = scores.log_softmax(dim=-1)
    expect(
        look_up(letter, previous, x_t, before),
        right,
        otherwise="The log-probabilities are wrong: log softmax of letter[x_t] + "
        "previous[y_{t-1}].",
        mistakes={
            "These are scores: their exponentials do not sum to 1 until log_softmax has "
            "been taken.": scores,
            "These are probabilities: the contract wants their logarithms.": right.exp(),
            "The probabilities sum to 1 over the batch: they should over the sounds, the "
            "last axis.": scores.log_softmax(dim=0),
            "The second table is read by columns: row y_{t-1} says what follows.": (
                (letter[x_t] + previous[:, before].T).log_softmax(dim=-1)
            ),
            "The letter is not used.": previous[before].log_softmax(dim=-1),
            "The sound before is not used.": letter[x_t].log_softmax(dim=-1),
            "The tables are multiplied: weights are multiplied, so their logarithms are "
            "added.": (letter[x_t] * previous[before]).log_softmax(dim=-1),
            "Each table is made a distribution by itself: the sum of two has to be made "
            "one again.": letter[x_t].log_softmax(-1)
            + previous[before].log_softmax(-1),
        },
    )
