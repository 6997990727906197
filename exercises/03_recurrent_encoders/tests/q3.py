"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("03_recurrent_encoders", "q3")
def check_last(summaries):  # 1 point
    expect(
        three_things(summaries(STATES, MASK))[0],
        torch.tensor([[3.0, -2.0], [1.0, -1.0]]),
        otherwise="The last state is wrong: it stands at the last real position.",
        mistakes={
            "This is the last column: in a padded row the last letter stands earlier.": (
                STATES[:, -1]
            ),
            "This is one position too early: the last of L states has the index L − 1.": (
                STATES[[0, 1], [0, 2]]
            ),
            "This is the first state: it has read one letter only.": STATES[:, 0],
            "The mean comes first here: return last, mean, maximum.": torch.tensor(
                [[2.0, -5.0], [3.5, -4.0]]
            ),
        },
    )


@case("03_recurrent_encoders", "q3")
def check_mean(summaries):  # 1 point
    expect(
        three_things(summaries(STATES, MASK))[1],
        torch.tensor([[2.0, -5.0], [3.5, -4.0]]),
        otherwise="The mean is wrong: add up the real states of a row, divide by how "
        "many they are.",
        mistakes={
            "The mean counts padding: leave it out of the sum.": STATES.mean(dim=1),
            "The sum is right, and divided by S: divide by the number of real positions "
            "of the row.": torch.tensor([[1.0, -2.5], [3.5, -4.0]]),
            "Each row is divided by the real positions of the whole batch: count them "
            "row by row.": torch.tensor([[4.0, -10.0], [14.0, -16.0]]) / 6,
            "This is the sum: divide by the number of real positions.": torch.tensor(
                [[4.0, -10.0], [14.0, -16.0]]
            ),
        },
    )


@case("03_recurrent_encoders", "q3")
def check_maximum(summaries):  # 1 point
    expect(
        three_things(summaries(STATES, MASK))[2],
        torch.tensor([[3.0, -2.0], [7.0, -1.0]]),
        otherwise="The maximum is wrong: the largest value of each unit over the real "
        "positions.",
        mistakes={
            "The maximum sees padding: fill it with minus infinity first.": STATES.amax(
                dim=1
            ),
            "The maximum is 0 where all states are negative: fill padding with minus "
            "infinity, not with 0.": torch.tensor([[3.0, 0.0], [7.0, -1.0]]),
            "The maximum is that of one position: take it unit by unit, each unit may "
            "have its own.": torch.tensor([[3.0, -2.0], [7.0, -5.0]]),
        },
    )
