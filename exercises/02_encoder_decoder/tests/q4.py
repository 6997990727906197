"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("02_encoder_decoder", "q4")
def check_reorder_rows(reorder):  # 2 points
    state = {
        "states": numbers(3, 5, 2),
        "mask": torch.arange(5) < torch.tensor([[5], [2], [3]]),
        "summary": numbers(3, 2, seed=1),
        "hidden": numbers(4, 3, 2, seed=2),
        "position": 3,
    }
    rows = torch.tensor([2, 0, 1])
    new = reorder(state, rows)
    assert isinstance(new, dict), f"Expected a dictionary, got {type(new).__name__}."
    assert new.keys() == state.keys(), (
        f"The new state has {sorted(map(str, new))}, the old one {sorted(state)}."
    )
    expect(
        new["summary"],
        state["summary"][rows],
        otherwise="The summaries are wrong: row i of the new state is row rows[i] of "
        "the old one.",
        mistakes={
            "Nothing moved: rows would go on with the state of another answer.": (
                state["summary"]
            ),
            "Rows are sent where they should be fetched: new row i is old row "
            "rows[i].": state["summary"][rows.argsort()],
        },
    )
    expect(
        new["states"],
        state["states"][rows],
        otherwise="The states are wrong: move the rows, keep positions and features.",
        mistakes={
            "The states of the memory stay behind: a row would read another's source.": (
                state["states"]
            ),
        },
    )
    expect(
        new["mask"],
        state["mask"][rows],
        otherwise="The mask is wrong: it moves as the states do.",
        mistakes={
            "The mask stays behind: a row would take another's padding for real.": (
                state["mask"]
            ),
        },
    )


@case("02_encoder_decoder", "q4")
def check_reorder_hidden(reorder):  # 1 point
    state = {
        "states": numbers(3, 5, 2),
        "mask": torch.ones(3, 5, dtype=torch.bool),
        "summary": numbers(3, 2, seed=1),
        "hidden": numbers(4, 3, 2, seed=2),
        "position": 3,
    }
    rows = torch.tensor([2, 0, 0])
    new = reorder(state, rows)
    expect(
        new["hidden"],
        state["hidden"][:, rows],
        otherwise="The hidden states are wrong: L B D, so rows are the second axis.",
        mistakes={
            "The layers are reordered: rows are the second axis of `hidden`.": (
                state["hidden"][rows]
            ),
            "The hidden states stay behind: a row would go on with another's past.": (
                state["hidden"]
            ),
        },
    )
    expect(
        new["position"],
        3,
        otherwise="The position is wrong: it is the same number as before.",
        mistakes={
            "The position begins again: to reorder is not to start anew.": 0,
            "The position is a tensor of rows: it is one number for all rows.": (
                torch.tensor([3, 3, 3])
            ),
        },
    )
