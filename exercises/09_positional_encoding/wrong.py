"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch


def table(length, omega):
    angles = torch.arange(length, dtype=torch.double)[:, None] * omega
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def speeds(width):
    return 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.double) / width)


def even(width):
    if width % 2:
        raise ValueError("odd")
    return width


def rotation(angles):
    upper = torch.stack([angles.cos(), angles.sin()], dim=-1)
    lower = torch.stack([-angles.sin(), angles.cos()], dim=-1)
    return torch.block_diag(*torch.stack([upper, lower], dim=1))


def turned(a, b, angles):
    sine, cosine = angles.sin(), angles.cos()
    return a * cosine - b * sine, a * sine + b * cosine


# %% q1 output not shuffled
# Shuffle the output of f(X) too
def order_gap(f, x, order):
    return (f(x[order]) - f(x)).abs().max()


# %% q1 shuffled the wrong way
# P is applied the wrong way round
def order_gap(f, x, order):
    return (f(x[order])[order] - f(x)).abs().max()


# %% q1 the layer never sees the shuffle
# The gap is always 0
def order_gap(f, x, order):
    return (f(x)[order] - f(x)[order]).abs().max()


# %% q1 signed
# A difference below zero is a difference too
def order_gap(f, x, order):
    return (f(x[order]) - f(x)[order]).max()


# %% q1 signed, the other way round
# Differences below zero are lost
def order_gap(f, x, order):
    return (f(x)[order] - f(x[order])).max()


# %% q1 mean of the differences
# one row that differs is enough
def order_gap(f, x, order):
    return (f(x[order]) - f(x)[order]).abs().mean()


# %% q1 means compared
# Means over the rows are compared
def order_gap(f, x, order):
    return (f(x[order]).mean(dim=0) - f(x).mean(dim=0)).abs().max()


# %% q2 all sines first
# All sines come first
def sinusoids(length, width):
    p = table(length, speeds(even(width)))
    return torch.cat([p[:, 0::2], p[:, 1::2]], dim=1)


# %% q2 sines and cosines swapped
# Sines and cosines are swapped
def sinusoids(length, width):
    angles = torch.arange(length).double()[:, None] * speeds(even(width))
    return torch.stack([angles.cos(), angles.sin()], dim=-1).flatten(1)


# %% q2 exponent without its two
# the exponent is −2j/D, not −j/D
def sinusoids(length, width):
    j = torch.arange(even(width) // 2, dtype=torch.double)
    return table(length, 10000.0 ** -(j / width))


# %% q2 a frequency for each feature
# Each feature has a frequency of its own
def sinusoids(length, width):
    omega = 10000.0 ** -(torch.arange(even(width), dtype=torch.double) / width)
    angles = torch.arange(length).double()[:, None] * omega
    p = angles.sin()
    p[:, 1::2] = angles[:, 1::2].cos()
    return p


# %% q2 exponent without its sign
# the exponent is negative
def sinusoids(length, width):
    return table(length, 1 / speeds(even(width)))


# %% q2 from one
# Positions count from 1
def sinusoids(length, width):
    return table(length + 1, speeds(even(width)))[1:]


# %% q2 odd width
# An odd width was accepted
def sinusoids(length, width):
    return table(length, speeds(width))[:, :width]


# %% q2 single precision
# compute frequencies and angles with dtype=torch.double
def sinusoids(length, width):
    omega = speeds(even(width)).float()
    angles = torch.arange(length)[:, None] * omega
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


# %% q3 backwards
# This one turns backwards
def shift_matrix(distance, omega):
    return rotation(distance * omega).T


# %% q3 no minus
# a rotation has one minus
def shift_matrix(distance, omega):
    matrix = rotation(distance * omega)
    return matrix.triu() + matrix.triu(1).T


# %% q3 all sines first
# The blocks are for a table with all sines first
def shift_matrix(distance, omega):
    C, S = (distance * omega).cos().diag(), (distance * omega).sin().diag()
    return torch.cat([torch.cat([C, S], dim=1), torch.cat([-S, C], dim=1)])


# %% q3 distance not used
# The distance is not used
def shift_matrix(distance, omega):
    return rotation(omega)


# %% q3 power of every number
# three steps are three matrix products
def shift_matrix(distance, omega):
    return rotation(omega) ** distance


# %% q3 multiplied by the distance
# it is the angle that grows
def shift_matrix(distance, omega):
    return distance * rotation(omega)


# %% q3 one angle for all
# All pairs turn by the same angle
def shift_matrix(distance, omega):
    return rotation(distance * omega[:1].expand(len(omega)))


# %% q3 a loop of no steps
# a range that is empty
def shift_matrix(distance, omega):
    matrix = torch.eye(2 * len(omega))
    for _ in range(distance):
        matrix = rotation(omega) @ matrix
    return matrix


# %% q3 sign of the distance lost
# its sign is lost
def shift_matrix(distance, omega):
    return rotation(abs(distance) * omega)


# %% q4 start not used
# `start` is not used
def turn(x, omega, start):
    angles = torch.arange(x.shape[2])[:, None] * omega
    pairs = turned(x[..., 0::2], x[..., 1::2], angles)
    return torch.stack(pairs, dim=-1).flatten(-2)


# %% q4 one angle for all rows
# positions grow along T
def turn(x, omega, start):
    pairs = turned(x[..., 0::2], x[..., 1::2], start * omega)
    return torch.stack(pairs, dim=-1).flatten(-2)


# %% q4 backwards
# The turn goes backwards
def turn(x, omega, start):
    angles = torch.arange(start, start + x.shape[2])[:, None] * omega
    pairs = turned(x[..., 0::2], x[..., 1::2], -angles)
    return torch.stack(pairs, dim=-1).flatten(-2)


# %% q4 paired by halves
# A feature is paired with one half a width away
def turn(x, omega, start):
    angles = torch.arange(start, start + x.shape[2])[:, None] * omega
    return torch.cat(turned(*x.chunk(2, dim=-1), angles), dim=-1)


# %% q4 not put back
# turned but not put back
def turn(x, omega, start):
    angles = torch.arange(start, start + x.shape[2])[:, None] * omega
    return torch.cat(turned(x[..., 0::2], x[..., 1::2], angles), dim=-1)


# %% q4 counted along the heads
# The positions are counted along the heads
def turn(x, omega, start):
    angles = torch.arange(start, start + x.shape[1])[:, None, None] * omega
    pairs = turned(x[..., 0::2], x[..., 1::2], angles)
    return torch.stack(pairs, dim=-1).flatten(-2)


# %% q4 added
# The sinusoids are added
def turn(x, omega, start):
    return x + table(start + x.shape[2], omega)[start:].float()


# %% q4 table too short
# behind the end of a table a slice is empty
def turn(x, omega, start):
    angles = torch.arange(256)[:, None] * omega
    angles = angles[start : start + x.shape[2]]
    pairs = turned(x[..., 0::2], x[..., 1::2], angles)
    return torch.stack(pairs, dim=-1).flatten(-2)
