"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("09_positional_encoding", "q3")
def check_matrix_by_hand(shift_matrix):  # 3 points
    omega = [1.0, 0.4, 0.15]
    right = blocks([3 * w for w in omega])
    one = blocks(omega)
    expect(
        shift_matrix(3, torch.tensor(omega)),
        right,
        otherwise="The matrix is wrong: on its diagonal, one block of cosines and sines "
        "of δ ω_j for each frequency; zeros elsewhere.",
        mistakes={
            "This one turns backwards, from i to i − δ: the minus belongs in the lower "
            "left corner of each block.": blocks(
                [3 * w for w in omega], backwards=True
            ),
            "Both sines have the same sign: a rotation has one minus.": blocks(
                [3 * w for w in omega], mirrored=True
            ),
            "The blocks are for a table with all sines first: here a sine and its "
            "cosine are neighbours.": halves_first(right),
            "The distance is not used: this is the matrix for one step.": one,
            "Every number of the matrix for one step was raised to a power: three steps "
            "are three matrix products.": one**3,
            "Every number of the matrix for one step was multiplied by the distance: "
            "it is the angle that grows.": 3 * one,
            "All pairs turn by the same angle: each has a frequency of its own.": blocks(
                [3.0, 3.0, 3.0]
            ),
        },
    )
