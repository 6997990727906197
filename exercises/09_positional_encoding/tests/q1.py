"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
points = None

import math

import torch

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def look(x, hidden=None):
    scores = x @ x.mT / math.sqrt(x.shape[1])
    if hidden is not None:
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(dim=-1) @ x


def look_back(x):
    return look(x, torch.ones(len(x), len(x), dtype=torch.bool).triu(1))


def place_and_look(x):
    return look(x + torch.arange(len(x))[:, None].sin())


def largest(difference):
    return difference.abs().max().item()


def speeds(width):
    return [10000 ** (-2 * j / width) for j in range(width // 2)]


def table_of(positions, speeds, features=(math.sin, math.cos)):
    rows = [[f(i * w) for w in speeds for f in features] for i in positions]
    return torch.tensor(rows)


def blocks(angles, *, backwards=False, mirrored=False):
    matrix = torch.zeros(2 * len(angles), 2 * len(angles))
    for j, angle in enumerate(angles):
        a, b = 2 * j, 2 * j + 1
        matrix[a, a] = matrix[b, b] = math.cos(angle)
        matrix[a, b] = math.sin(-angle if backwards else angle)
        matrix[b, a] = matrix[a, b] if mirrored else -matrix[a, b]
    return matrix


def halves_first(matrix):
    order = [*range(0, len(matrix), 2), *range(1, len(matrix), 2)]
    return matrix[order][:, order]


def turned(x, omega, positions):
    angles = torch.tensor(list(positions))[:, None] * omega  # T K/2
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.exp(1j * angles)).flatten(-2)


@case("09_positional_encoding", "q1")
def check_blind_layer(measured):  # 2 points
    x, order = numbers(4, 3), [2, 0, 3, 1]
    before, after = look(x), look(x[order])
    expect(
        measured("look", x, order),
        0.0,
        otherwise="Plain self-attention is blind to order, but the gap is not 0: "
        "compare f(PX) with P f(X).",
        mistakes={
            "f(PX) is compared with f(X): its rows stand in another order. Shuffle the "
            "output of f(X) too.": largest(after - before),
            "P is applied the wrong way round: row order[0] of f(X) belongs beside row "
            "0 of f(PX).": largest(after[order] - before),
        },
    )
    assert measured("look_back", x, order) != 0, (
        "The gap is always 0: the layer itself must read the shuffled rows, f(PX)."
    )


@case("09_positional_encoding", "q1")
def check_layer_that_looks_back(measured):  # 2 points
    x, order = numbers(4, 3), [2, 0, 3, 1]
    found = [measured("look_back", sign * x, order) for sign in (1, -1)]
    gaps = [look_back(s * x[order]) - look_back(s * x)[order] for s in (1, -1)]
    means = [gap.mean(dim=0) for gap in gaps]
    expect(
        found,
        [largest(gap) for gap in gaps],
        otherwise="A layer that looks back is not blind to order, and its gap is "
        "wrong: the largest absolute value in f(PX) − P f(X).",
        mistakes={
            "The gap is always 0: the layer itself must read the shuffled rows, f(PX).": [
                0.0,
                0.0,
            ],
            "A difference below zero is a difference too: take absolute values before "
            "the maximum.": [gap.max().item() for gap in gaps],
            "Differences below zero are lost: take absolute values before the "
            "maximum.": [-gap.min().item() for gap in gaps],
            "This is the mean of the differences: one row that differs is enough, take "
            "the largest.": [gap.abs().mean().item() for gap in gaps],
            "Means over the rows are compared: they may agree while the rows do not.": [
                largest(mean) for mean in means
            ],
        },
    )
