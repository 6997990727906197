"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("09_positional_encoding", "q4")
def check_turn_by_hand(turn):  # 3 points
    x, omega = numbers(2, 3, 3, 6), torch.tensor([1.0, 0.4, 0.15])
    right = turned(x, omega, range(2, 5))
    order = [0, 3, 1, 4, 2, 5]
    halves = turned(x[..., order], omega, range(2, 5))
    expect(
        turn(x, omega, 2),
        right,
        otherwise="The features are wrong: at position i, (a, b) becomes "
        "(a cos − b sin, a sin + b cos) with the angle i ω_j.",
        mistakes={
            "The positions begin at 0: `start` is not used, and every step of a decoder "
            "would claim to be the first.": turned(x, omega, range(3)),
            "All rows are turned by the angle of the first: positions grow along T.": (
                turned(x, omega, [2, 2, 2])
            ),
            "The turn goes backwards: the minus belongs into the first feature of a "
            "pair.": turned(x, -omega, range(2, 5)),
            "A feature is paired with one half a width away: partners are neighbours, "
            "2j and 2j + 1.": halves[..., [0, 2, 4, 1, 3, 5]],
            "The pairs are turned but not put back: partners should be neighbours "
            "again.": torch.cat([right[..., 0::2], right[..., 1::2]], dim=-1),
            "The positions are counted along the heads: T is the third axis.": turned(
                x.transpose(1, 2), omega, range(2, 5)
            ).transpose(1, 2),
            "The sinusoids are added: rotary positions turn what is there.": (
                x + table_of(range(2, 5), omega.tolist())
            ),
        },
    )
