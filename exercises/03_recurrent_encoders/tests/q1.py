"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("03_recurrent_encoders", "q1")
def check_gru_like_pytorch(gru_step):  # 3 points
    random = torch.Generator().manual_seed(3)
    x, h = torch.randn(2, 3, generator=random), torch.randn(2, 2, generator=random)
    W, U = torch.randn(6, 3, generator=random), torch.randn(6, 2, generator=random)
    b, b2 = torch.randn(6, generator=random), torch.randn(2, generator=random)
    (x_r, x_z, x_n), (h_r, h_z, h_n) = gates(x, h, W, U, b)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * (h_n + b2)).tanh()
    earlier = (x_n + (r * h) @ U[4:].T + b2).tanh()
    unreset = (x_n + h_n + b2).tanh()
    exchanged = (x_n + z * (h_n + b2)).tanh()
    outside = (x_n + r * h_n + b2).tanh()
    everything = (r * (x_n + h_n + b2)).tanh()
    squashed = (x_n + r * (h_n + b2)).sigmoid()
    expect(
        gru_step(x, h, W, U, b, b2),
        torch_gru(x, h, W, U, b, b2),
        otherwise="The state differs from PyTorch's GRU: check the pieces one by one, r "
        "and z, then n, then the mixture.",
        mistakes={
            "z and 1 − z are exchanged: an open update gate, z = 1, keeps the old state.": (
                z * n + (1 - z) * h
            ),
            "r meets the state before the matrix, as in the paper of 2014: here it is "
            "r ∘ (U h + b').": (1 - z) * earlier + z * h,
            "The reset gate is not used: r decides how much of the old state n sees.": (
                (1 - z) * unreset + z * h
            ),
            "r and z are exchanged: the first piece is r, the second z.": (
                (1 - r) * exchanged + r * h
            ),
            "b' stands outside the reset gate: it belongs to U h, and r multiplies "
            "both.": (1 - z) * outside + z * h,
            "The reset gate shuts out the letter too: r multiplies the part of h only.": (
                (1 - z) * everything + z * h
            ),
            "The candidate n is a tanh: it may be negative, a gate may not.": (
                (1 - z) * squashed + z * h
            ),
            "The old state is missing from the mixture: z ∘ h keeps the memory.": (
                (1 - z) * n
            ),
        },
    )
