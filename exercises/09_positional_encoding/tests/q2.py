"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("09_positional_encoding", "q2")
def check_table_by_hand(sinusoids):  # 3 points
    omega = speeds(6)
    right = table_of(range(4), omega)
    singly = torch.tensor(
        [
            [(math.cos if d % 2 else math.sin)(i * 10000 ** (-d / 6)) for d in range(6)]
            for i in range(4)
        ]
    )
    expect(
        sinusoids(4, 6),
        right,
        otherwise="The table is wrong: sin(i ω_j) in feature 2j, cos(i ω_j) in 2j + 1, "
        "ω_j = 10000^(−2j/D).",
        mistakes={
            "All sines come first: here each sine stands beside the cosine of the same "
            "frequency.": torch.cat([right[:, 0::2], right[:, 1::2]], dim=1),
            "Sines and cosines are swapped: position 0 is 0, 1, 0, 1, …": table_of(
                range(4), omega, (math.cos, math.sin)
            ),
            "Neighbouring frequencies are too close: the exponent is −2j/D, not "
            "−j/D.": table_of(range(4), [w**0.5 for w in omega]),
            "Each feature has a frequency of its own: a sine and the cosine beside it "
            "share one.": singly,
            "The hands get quicker from left to right: the exponent is negative.": (
                table_of(range(4), [1 / w for w in omega])
            ),
            "Positions count from 1 here: the first row belongs to position 0.": (
                table_of(range(1, 5), omega)
            ),
        },
    )
