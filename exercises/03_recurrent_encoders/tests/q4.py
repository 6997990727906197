"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("03_recurrent_encoders", "q4")
def check_both_ways_by_hand(read_both_ways):  # 4 points
    x = torch.tensor(
        [
            [[2.0, 1.0], [1.0, 0.0], [3.0, 4.0], [9.0, 8.0]],
            [[4.0, 2.0], [2.0, 6.0], [8.0, 0.0], [1.0, 5.0]],
        ]
    )
    lengths = [3, 4]
    real = real_positions(lengths, 4)[..., None]
    forwards, backwards = halves(x, lengths)
    read_on, padding_first = halves(x, [4, 4])
    unturned = torch.zeros_like(x)
    for row, n in enumerate(lengths):
        unturned[row, :n] = backwards[row, :n].flip(0)
    carried = backwards.clone()
    carried[0, 3] = x[0, 3] + backwards[0, 0] / 2
    expect(
        read_both_ways(x, real[..., 0]),
        torch.cat([forwards, backwards], dim=-1),
        otherwise="The states are wrong: read left to right in the first half, right to "
        "left in the second, each row without its padding.",
        mistakes={
            "The second half has read padding first: turn around the real part of each "
            "row only.": torch.cat([forwards, padding_first * real], dim=-1),
            "The second half is not turned back: its states stand at the wrong letters.": (
                torch.cat([forwards, unturned], dim=-1)
            ),
            "Both halves read from left to right.": torch.cat([forwards, forwards], -1),
            "Both halves read from right to left.": torch.cat(
                [backwards, backwards], -1
            ),
            "The halves are exchanged: left to right comes first.": torch.cat(
                [backwards, forwards], dim=-1
            ),
            "The halves are added up: put them side by side, 2·D wide.": (
                forwards + backwards
            ),
            "The halves stand behind each other: put them side by side, along the last "
            "axis.": torch.cat([forwards, backwards], dim=1),
            "States at padding should be 0.": torch.cat([read_on, carried], dim=-1),
        },
    )
