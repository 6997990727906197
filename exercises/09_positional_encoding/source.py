# %% [markdown]
# # Exercise 9: Positional encoding
#
# You measure whether a layer is blind to order, and then write what cures it: sinusoids,
# the rotation that shifts them, and rotary positions. Each answer is a few lines of
# PyTorch. Axes are those of the chapter: S or T positions, D width, B batch, H heads, K
# width of one head. Positions count from 0.

# %% given
import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def look(x: Float[Tensor, "S D"]) -> Float[Tensor, "S D"]:
    """Self-attention whose queries, keys and values are the rows themselves."""
    return (x @ x.mT / math.sqrt(x.shape[1])).softmax(dim=-1) @ x


def look_back(x: Float[Tensor, "S D"]) -> Float[Tensor, "S D"]:
    """The same, but no row looks at those behind it."""
    hidden = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    scores = x @ x.mT / math.sqrt(x.shape[1])
    return scores.masked_fill(hidden, -torch.inf).softmax(dim=-1) @ x


def place_and_look(x: Float[Tensor, "S D"]) -> Float[Tensor, "S D"]:
    """Add the sine of its position to each row, then look."""
    return look(x + torch.arange(len(x))[:, None].sin())


def measured(name, x, order):
    """Measure one of the layers above."""
    layers = {"look": look, "look_back": look_back, "place_and_look": place_and_look}
    return float(order_gap(layers[name], x, order))


# %% helpers
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


# %% [markdown] question difficulty=2 minutes=10 reread=the-reason
# ## Is it blind to order?
#
# **Goal.** A layer `f` is blind to order if $f(PX) = P f(X)$ for every permutation $P$.
# Measure how far it is from that for one permutation: return the largest absolute value
# in $f(PX) - P f(X)$, one number. `order` says which row of $X$ comes first in $PX$,
# which comes second, and so on: for `[1, 2, 0]`, row 1 comes first.
#
# The notebook gives three layers to try it on: `look` is self-attention, `look_back` has a
# causal mask, `place_and_look` adds positions first.

# %% [markdown] hint
# $PX$ is `x[order]`. What is $P f(X)$?

# %% [markdown] hint
# Compare `f(x[order])` with `f(x)[order]`. Differences may be negative: `.abs()` comes
# before `.max()`.


# %% solution
def order_gap(
    f: Callable[[Tensor], Tensor], x: Float[Tensor, "S D"], order: list[int]
) -> float:
    """The largest absolute value in f(PX) − P f(X)."""
    # BEGIN SOLUTION
    return (f(x[order]) - f(x)[order]).abs().max().item()
    # END SOLUTION


# %% checks
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


# %% hidden
def check_random_orders(measured, random):  # 1 point
    x = torch.randn(6, 4, generator=random)
    order = torch.randperm(6, generator=random).tolist()
    expect(
        measured("place_and_look", x, order),
        largest(place_and_look(x[order]) - place_and_look(x)[order]),
        otherwise="With positions in the rows, on random rows and orders, the gap is "
        "wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=by-hand-on-three-letters
# ## The table of sinusoids
#
# **Goal.** Return the positions 0 to `length` − 1 as rows:
# $p_{i,\,2j} = \sin(i\,\omega_j)$ and $p_{i,\,2j+1} = \cos(i\,\omega_j)$ with
# $\omega_j = 10000^{-2j/D}$. Sines and cosines come in pairs: raise a `ValueError` if the
# width is odd. Rows of several thousand must be right to four digits, so compute the
# angles in double precision; the table itself may have either.

# %% [markdown] hint
# There are D/2 frequencies, and $2j$ runs through 0, 2, 4, …. An outer product gives all
# angles, T D/2.

# %% [markdown] hint
# `even = torch.arange(0, width, 2, dtype=torch.double)`, then `10000.0 ** -(even / width)`.
# To interleave, `torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)`.


# %% solution
def sinusoids(length: int, width: int) -> Float[Tensor, "T D"]:
    """Sines in the even features and cosines in the odd ones."""
    # BEGIN SOLUTION
    if width % 2:
        raise ValueError(f"width={width}: sines and cosines come in pairs.")
    omega = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.double) / width)
    angles = torch.arange(length, dtype=torch.double)[:, None] * omega  # T D/2
    table = torch.stack([angles.sin(), angles.cos()], dim=-1)  # T D/2 2
    return table.flatten(1).float()
    # END SOLUTION


# %% checks
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


# %% hidden
def check_odd_width(sinusoids):  # 1 point
    refused = []
    for width in (4, 5):
        try:
            sinusoids(3, width)
        except ValueError:
            refused.append(width)
    assert 4 not in refused, (
        "An even width was refused: only odd ones cannot be paired."
    )
    assert 5 in refused, (
        "An odd width was accepted: one frequency would have no partner. Raise a "
        "ValueError."
    )


def check_rows_far_away(sinusoids):  # 2 points
    answer, right = sinusoids(4000, 14), table_of(range(4000), speeds(14))
    expect(answer, right, otherwise="The rows of a long table are wrong.")
    assert largest(answer - right) < 2e-5, (
        "The first rows of a long table are right, later ones drift: compute "
        "frequencies and angles with dtype=torch.double."
    )


# %% [markdown] question difficulty=3 minutes=15 reread=a-shift-is-a-rotation
# ## A shift as a matrix
#
# **Goal.** Build the matrix $R_\delta$ that carries every position to the one $\delta$
# further on: $R_\delta\, p_i = p_{i+\delta}$ for all $i$. The frequencies are given as
# `omega`, and features are in pairs as in the chapter: $p_i$ is $\sin(i\,\omega_0)$,
# $\cos(i\,\omega_0)$, $\sin(i\,\omega_1)$, and so on. A negative distance goes back.

# %% [markdown] hint
# The chapter has the 2 × 2 block of one frequency. Each pair turns by its own angle, and
# no pair mixes with another.

# %% [markdown] hint
# For each `w` in `omega`, with $a = \delta w$, the block is
# `[[cos a, sin a], [-sin a, cos a]]`. `torch.block_diag(*blocks)` puts blocks on a
# diagonal.


# %% solution
def shift_matrix(distance: int, omega: Float[Tensor, " half"]) -> Float[Tensor, "D D"]:
    """The rotation that carries the sinusoids of any position i to those of i + δ."""
    # BEGIN SOLUTION
    sine, cosine = (distance * omega).sin(), (distance * omega).cos()
    upper = torch.stack([cosine, sine], dim=-1)
    lower = torch.stack([-sine, cosine], dim=-1)
    return torch.block_diag(*torch.stack([upper, lower], dim=1))
    # END SOLUTION


# %% checks
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


# %% hidden
def check_way_back(shift_matrix):  # 1 point
    omega = [1.0, 0.3]
    expect(
        shift_matrix(-2, torch.tensor(omega)),
        blocks([-2 * w for w in omega]),
        otherwise="A negative distance should turn the hands back.",
        mistakes={
            "A negative distance changes nothing: no step is taken, such as in a loop "
            "over a range that is empty.": torch.eye(4),
            "A negative distance goes forwards: its sign is lost.": blocks(
                [2 * w for w in omega]
            ),
        },
    )


def check_every_position_is_carried(shift_matrix, random):  # 2 points
    omega = torch.rand(4, generator=random).tolist()
    distance, start = torch.randint(1, 9, (2,), generator=random).tolist()
    p = table_of(range(start, start + 20), omega)
    expect(
        p @ shift_matrix(distance, torch.tensor(omega)).to(p).mT,
        table_of(range(start + distance, start + distance + 20), omega),
        otherwise="With other frequencies and distances, some positions are not carried "
        "to where they belong.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=rotary-positions
# ## Rotary positions from any start
#
# **Goal.** Turn queries or keys by their positions. The first row along T stands at
# position `start`, the next one at `start` + 1, and so on. At position $i$ the pair of
# features $2j$ and $2j + 1$ turns by the angle $i\,\omega_j$: a pair $(1, 0)$ becomes
# $(\cos i\,\omega_j, \sin i\,\omega_j)$. The frequencies are given as `omega`. Nothing
# bounds `start`.

# %% [markdown] hint
# Compute the angles first, T K/2. They broadcast over batch and heads. Then take the
# pairs apart: `x[..., 0::2]` and `x[..., 1::2]`.

# %% [markdown] hint
# A pair $(a, b)$ becomes $(a \cos - b \sin,\ a \sin + b \cos)$. Stack both along a new
# last axis and flatten it, so that the partners are neighbours again.


# %% solution
def turn(
    x: Float[Tensor, "B H T K"], omega: Float[Tensor, " half"], start: int
) -> Float[Tensor, "B H T K"]:
    """Turn each pair of features by the angle of its position."""
    # BEGIN SOLUTION
    angles = torch.arange(start, start + x.shape[2])[:, None] * omega  # T K/2
    sine, cosine = angles.sin(), angles.cos()
    a, b = x[..., 0::2], x[..., 1::2]  # B H T K/2
    pairs = torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1)
    return pairs.flatten(-2)
    # END SOLUTION


# %% checks
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


# %% hidden
def check_start_far_away(turn):  # 1 point
    start = 1_000_003
    x, omega = numbers(1, 2, 1, 4), torch.tensor([2.0**-9, 2.0**-12])  # exact angles
    answer = turn(x, omega, start)
    assert tuple(answer.shape) == tuple(x.shape), (
        "A step far from the beginning comes back with another shape: behind the end of "
        "a table a slice is empty. Compute the angles for the positions that are asked."
    )
    expect(
        answer,
        turned(x, omega, [start]),
        otherwise="A single step far from the beginning is turned by a wrong angle.",
    )


def check_only_the_distance_counts(turn, random):  # 2 points
    q, k = torch.randn(2, 2, 3, 1, 8, generator=random)
    omega = torch.rand(4, generator=random)
    first, step = torch.randint(1, 9, (2,), generator=random).tolist()
    places = (first, first + 7)
    scores = [turn(q, omega, i) @ turn(k, omega, i + step).mT for i in places]
    right = q @ turned(k, omega, [step]).mT
    expect(
        scores,
        [right, right],
        otherwise="The score of a query and a key should depend on their distance only, "
        "wherever the two stand.",
    )
