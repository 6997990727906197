"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("03_recurrent_encoders", "q2")
def check_padding_by_hand(read_padded):  # 3 points
    x = torch.tensor(
        [
            [[0.2, -0.1], [0.3, 0.5], [-0.4, 0.1], [0.6, 0.2]],
            [[0.5, 0.4], [-0.2, 0.3], [0.9, 0.9], [0.9, 0.9]],
        ]
    )
    W = torch.tensor([[1.0, 0.5], [-0.5, 1.0], [0.3, 0.2]])
    U = torch.tensor([[0.5, 0.9, 0.0], [-0.3, 0.4, 0.2], [0.1, 0.0, -0.7]])
    b = torch.tensor([0.1, -0.2, 0.3])
    lengths = [4, 2]
    mask = real_positions(lengths, 4)
    right, last = rnn_states(x, lengths, W, U, b)
    read_on, end = rnn_states(x, [4, 4], W, U, b)
    zeroed = right * mask[..., None]
    late = torch.cat([torch.zeros(2, 1, 3), right[:, :-1]], dim=1)
    turned, turned_end = rnn_states(x, lengths, W, U.T, b)
    alone, alone_end = rnn_states(x, lengths, W, U, b, carry=0.0)
    straight, straight_end = rnn_states(x, lengths, W, U, b, squash=lambda h: h)
    expect(
        read_padded(x, mask, W, U, b),
        (right, last),
        otherwise="The states are wrong: tanh(W x + U h + b) from left to right, and the "
        "old state where the mask is False.",
        mistakes={
            "Padding was read like a letter: keep the old state where the mask is False.": (
                read_on,
                end,
            ),
            "The states at padding are 0: they should stand still, at the last real "
            "state.": (zeroed, zeroed[:, -1]),
            "The states come one position late: collect h after its letter was read.": (
                late,
                last,
            ),
            "U is turned around: for rows of states U h is h @ U.T.": (
                turned,
                turned_end,
            ),
            "No state is carried along: h has to enter the next step.": (
                alone,
                alone_end,
            ),
            "The tanh is missing: nothing keeps the state between −1 and 1.": (
                straight,
                straight_end,
            ),
            "The last states are those of padding: return h as it stands at the end.": (
                right,
                end,
            ),
        },
    )
