"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
points = None

import torch
from torch import nn

from seq2seq_lib.grading.expect import expect


def gates(x, h, W, U, b):
    from_x, from_h = x @ W.T + b, h @ U.T
    return from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1)


def torch_gru(x, h, W, U, b, b2):
    cell = nn.GRUCell(x.shape[1], h.shape[1])
    unused = torch.zeros(2 * h.shape[1])
    with torch.no_grad():
        cell.weight_ih.copy_(W)
        cell.weight_hh.copy_(U)
        cell.bias_ih.copy_(b)
        cell.bias_hh.copy_(torch.cat([unused, b2]))
        return cell(x, h)


def row_states(x, W, U, b, *, squash=torch.tanh, carry=1.0):
    h, states = torch.zeros(len(U)), []
    for letter in x:
        h = squash(W @ letter + carry * (U @ h) + b)
        states.append(h)
    return torch.stack(states)


def rnn_states(x, lengths, *weights, **options):
    """Every row alone, without its padding; then its last state, repeated."""
    rows = []
    for row, n in zip(x, lengths, strict=True):
        states = row_states(row[:n], *weights, **options)
        rows.append(torch.cat([states, states[-1:].expand(len(row) - n, -1)]))
    states = torch.stack(rows)
    return states, states[:, -1]


def expect_shortened(clip):
    expect(
        clip([torch.tensor([5.0])], 2.0),
        [torch.tensor([2.0])],
        otherwise="A gradient that is too long should be as long as the limit.",
    )


def three_summaries(states, lengths):
    rows = [row[:n] for row, n in zip(states, lengths, strict=True)]
    return (
        torch.stack([row[-1] for row in rows]),
        torch.stack([row.mean(dim=0) for row in rows]),
        torch.stack([row.amax(dim=0) for row in rows]),
    )


def halves(x, lengths):
    """States of h' = x + h / 2 in both directions, each row alone; 0 at padding."""
    forwards, backwards = torch.zeros_like(x), torch.zeros_like(x)
    for row, n in enumerate(lengths):
        h = torch.zeros(x.shape[2])
        for s in range(n):
            h = forwards[row, s] = x[row, s] + h / 2
        h = torch.zeros(x.shape[2])
        for s in reversed(range(n)):
            h = backwards[row, s] = x[row, s] + h / 2
    return forwards, backwards


def real_positions(lengths, S):
    return torch.arange(S) < torch.tensor(lengths)[:, None]


STATES = torch.tensor(
    [
        [[1.0, -8.0], [3.0, -2.0], [9.0, 9.0], [9.0, 9.0]],
        [[2.0, -4.0], [7.0, -5.0], [4.0, -6.0], [1.0, -1.0]],
    ]
)
MASK = torch.tensor([[True, True, False, False], [True, True, True, True]])


def three_things(answer):
    assert isinstance(answer, tuple | list), (
        "Return three things: the last state, the mean and the maximum."
    )
    assert len(answer) == 3, f"Return three things, not {len(answer)}."
    return answer


@case("03_recurrent_encoders", "q5")
def check_clip_by_hand(clip):  # 2 points
    gradients = [torch.tensor([[3.0, 0.0], [0.0, -4.0]]), torch.tensor([12.0])]

    def scaled(*factors):
        return [g * f for g, f in zip(gradients, factors, strict=True)]

    expect(
        clip(gradients, 2.0),
        scaled(2 / 13, 2 / 13),
        otherwise="The gradients 3, −4 and 12 are 13 long together: to be 2 long, each is "
        "multiplied by 2/13.",
        mistakes={
            "Each gradient is clipped by itself: one factor for all keeps the direction "
            "of the step.": scaled(2 / 5, 2 / 12),
            "Each number is cut off at the limit: that turns the step, one factor does "
            "not.": [g.clamp(-2, 2) for g in gradients],
            "The lengths of the parts are added: add their squares, then take the root.": (
                scaled(2 / 17, 2 / 17)
            ),
            "The root is missing: 169 is the square of the length.": scaled(
                2 / 169, 2 / 169
            ),
            "The gradients are 1 long now: `limit` is not used.": scaled(
                1 / 13, 1 / 13
            ),
            "The squares are averaged: the length adds them up.": scaled(
                2 / (169 / 5) ** 0.5, 2 / (169 / 5) ** 0.5
            ),
            "The largest number was taken for the length: it is the root of the sum of "
            "all squares.": scaled(2 / 12, 2 / 12),
            "Long gradients were left as they are: the factor is the smaller one of 1 and "
            "limit / length.": gradients,
        },
    )


@case("03_recurrent_encoders", "q5")
def check_short_gradients(clip):  # 1 point
    gradients = [torch.tensor([0.3]), torch.tensor([[-0.4, 0.0]])]
    expect(
        clip(gradients, 2.0),
        gradients,
        otherwise="Gradients within the limit should stay as they are.",
        mistakes={
            "Short gradients are made longer: the factor is at most 1.": [
                4 * g for g in gradients
            ],
        },
    )
    expect_shortened(clip)
