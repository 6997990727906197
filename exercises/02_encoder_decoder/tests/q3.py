"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("02_encoder_decoder", "q3")
def check_greedy(spoken):  # 3 points
    letter, previous = tables(9, 9, seed=8)
    xs = [[4, 7, 5, 6, 2], [6, 5, 2]]
    answer = spoken(letter, previous, filled(xs), 8)
    ended = [speech(letter, previous, x, 8) for x in xs]
    right = [said[:-1] for said in ended]
    assert isinstance(answer, list), (
        f"Expected a list of lists, got {type(answer).__name__}."
    )
    assert not any(isinstance(row, torch.Tensor) for row in answer), (
        "The rows are tensors: expected lists of whole numbers, as tolist() gives."
    )
    expect(
        answer,
        right,
        otherwise="The answers are wrong: the most probable symbol at each step, handed "
        "back, until EOS.",
        mistakes={
            "EOS stands in the answers: it says where they end, and is no part.": ended,
            "BOS stands in the answers: it is read, and never said.": [
                [1, *said] for said in right
            ],
            "A row goes on speaking behind its EOS while others are not done: what it "
            "says then does not count.": [right[0], [*right[1], 4]],
            "All rows stop when the first one ends: the others have more to say.": [
                said[: len(right[1])] for said in right
            ],
            "The state is the first one at every step: use the one that step returns.": [
                speech(letter, previous, x, 8, still=True) for x in xs
            ],
            "BOS is read at every step: the decoder should read what it said.": [
                speech(letter, previous, x, 8, repeat=True)[:-1] for x in xs
            ],
        },
    )


@case("02_encoder_decoder", "q3")
def check_greedy_stops(spoken):  # 1 point
    letter, previous = tables(9, 9, seed=8)
    xs = [[4, 7, 5, 6, 2], [6, 5, 2]]
    answer = spoken(letter, previous, filled(xs), 3)
    ended = [speech(letter, previous, x, 8) for x in xs]
    expect(
        answer,
        [ended[0][:3], ended[1][:2]],
        otherwise="With max_length=3 a longer answer should be cut to three symbols.",
        mistakes={
            "One symbol too many is said: at most max_length.": [
                ended[0][:4],
                ended[1][:2],
            ],
            "One symbol too few is said: BOS does not count for max_length.": [
                ended[0][:2],
                ended[1][:2],
            ],
            "An answer that was cut is thrown away: return what was said so far.": [
                [],
                ended[1][:2],
            ],
        },
    )
