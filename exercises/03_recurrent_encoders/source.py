# %% [markdown]
# # Exercise 3: Recurrent encoders
#
# You write the parts of an encoder that reads: one step of a GRU, a loop that stands
# still at padding, three summaries, reading in both directions, and the clipping that
# keeps training on the slope. Letters are those of the chapter: B batch, S source, E
# width of an input, D width of a state. Masks are `True` where a real letter stands, and
# padding comes last in each row.

# %% given
import torch
from jaxtyping import Bool, Float
from torch import Tensor


def read(x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
    """All states of h' = x + h / 2, from left to right; it knows of no padding."""
    states, h = [], torch.zeros_like(x[:, 0])
    for s in range(x.shape[1]):
        h = x[:, s] + h / 2
        states.append(h)
    return torch.stack(states, dim=1)


# %% helpers
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


# %% [markdown] question difficulty=2 minutes=15 reread=three-cells
# ## One step of a GRU
#
# **Goal.** Compute the new state from the letter and the old state:
#
# $$\begin{gathered}
# r, z = \sigma(W_{r,z}\, x + U_{r,z}\, h + b_{r,z}) \\
# n = \tanh(W_n x + b_n + r \circ (U_n h + b'_n)) \\
# h' = (1 - z) \circ n + z \circ h
# \end{gathered}$$
#
# W, U and b hold three pieces of D rows each, for r, z and n in this order; `b2` is
# $b'_n$.

# %% [markdown] hint
# Multiply once, cut afterwards: `x @ W.T + b` has the shape (B, 3·D), and so has
# `h @ U.T`. Why can the two not be added before they are cut?

# %% [markdown] hint
# `x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)`, the same for `h @ U.T`. The gates are
# `(x_r + h_r).sigmoid()` and `(x_z + h_z).sigmoid()`; only in n does the part of h meet a
# gate first.


# %% solution
def gru_step(
    x: Float[Tensor, "B E"],
    h: Float[Tensor, "B D"],
    W: Float[Tensor, "3*D E"],
    U: Float[Tensor, "3*D D"],
    b: Float[Tensor, " 3*D"],
    b2: Float[Tensor, " D"],
) -> Float[Tensor, "B D"]:
    """The state after one more letter."""
    # BEGIN SOLUTION
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * (h_n + b2)).tanh()
    return (1 - z) * n + z * h
    # END SOLUTION


# %% checks
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


# %% hidden
def check_gru_random(gru_step, random):  # 1 point
    x, h = torch.randn(4, 5, generator=random), torch.randn(4, 3, generator=random)
    W, U = torch.randn(9, 5, generator=random), torch.randn(9, 3, generator=random)
    b, b2 = torch.randn(9, generator=random), torch.randn(3, generator=random)
    expect(
        gru_step(x, h, W, U, b, b2),
        torch_gru(x, h, W, U, b, b2),
        otherwise="With other widths the state differs from PyTorch's GRU.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=padding-must-not-change-the-state
# ## Stand still at padding
#
# **Goal.** Read a padded batch with a plain RNN, $h_s = \tanh(W x_s + U h_{s-1} + b)$ from
# $h_0 = 0$. At padding the state **stands still**: the old one is kept. Return the state
# of every position, and the last ones.

# %% [markdown] hint
# One loop over the positions, for all rows at once. How can some rows of h change while
# others stay?

# %% [markdown] hint
# Compute the new state for all rows, then
# `h = torch.where(mask[:, s, None], new, h)`, and collect h. `torch.stack(…, dim=1)`
# makes one tensor of them.


# %% solution
def read_padded(
    x: Float[Tensor, "B S E"],
    mask: Bool[Tensor, "B S"],
    W: Float[Tensor, "D E"],
    U: Float[Tensor, "D D"],
    b: Float[Tensor, " D"],
) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]:
    """All states of an RNN, and the last ones; at padding nothing moves."""
    # BEGIN SOLUTION
    h = x.new_zeros(len(x), len(U))
    states = []
    for s in range(x.shape[1]):
        new = (x[:, s] @ W.T + h @ U.T + b).tanh()
        h = torch.where(mask[:, s, None], new, h)
        states.append(h)
    return torch.stack(states, dim=1), h
    # END SOLUTION


# %% checks
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


# %% hidden
def check_padding_changes_nothing(read_padded, random):  # 2 points
    x = torch.randn(3, 5, 2, generator=random)
    W, U = torch.randn(4, 2, generator=random), torch.randn(4, 4, generator=random)
    b = torch.randn(4, generator=random)
    lengths = [3, 1, 4]
    states, last = read_padded(x, real_positions(lengths, 5), W, U, b)
    right, right_last = rnn_states(x, lengths, W, U, b)
    expect(
        states,
        right,
        otherwise="Where every row is padded some states are wrong.",
    )
    expect(
        last,
        right_last,
        otherwise="The last states are wrong where every row is padded.",
    )


# %% [markdown] question difficulty=3 minutes=15 reread=from-states-to-one-summary
# ## Three summaries
#
# **Goal.** Make one vector of the states of each word, in three ways: the last real
# state, the mean of the real states, and their maximum, unit by unit. Padding counts in
# none of them; anything may stand there, even `NaN`. Every row has one real state at
# least.

# %% [markdown] hint
# `mask.sum(dim=1)` counts the real positions of each row: where does the last one stand?
# What can padding be filled with so that a sum, or a maximum, does not see it?

# %% [markdown] hint
# The last: `states[torch.arange(len(states)), lengths - 1]`. The mean: fill padding with
# 0, add up, divide by the lengths as a column. The maximum: fill it with `-torch.inf`.


# %% solution
def summaries(
    states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """The last state, the mean and the maximum of each row, without padding."""
    # BEGIN SOLUTION
    lengths = mask.sum(dim=1)
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), lengths - 1]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    maximum = states.masked_fill(padding, -torch.inf).amax(dim=1)
    return last, mean, maximum
    # END SOLUTION


# %% checks
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


# %% hidden
def check_summaries_random(summaries, random):  # 1 point
    states = torch.randn(4, 6, 3, generator=random) - 1
    lengths = [2, 5, 1, 4]
    expect(
        three_things(summaries(states, real_positions(lengths, 6))),
        three_summaries(states, lengths),
        otherwise="On random states, some of one letter only, a summary is wrong.",
    )


def check_summaries_of_no_number(summaries):  # 1 point
    states = STATES.clone()
    states[0, 2:] = torch.nan
    answer = three_things(summaries(states, MASK))
    assert all(bool(torch.isfinite(part).all()) for part in answer), (
        "Something that is no number stood at padding and came through: 0 times NaN is "
        "NaN. Fill padding, do not multiply it away."
    )
    expect(
        answer,
        three_summaries(states, [2, 4]),
        otherwise="With something at padding that is no number, a summary is wrong.",
    )


# %% [markdown] question difficulty=4 minutes=25 reread=reading-in-both-directions
# ## Read in both directions
#
# **Goal.** `read` is given: it reads every row from left to right, and knows of no
# padding. Use it twice to read in both directions, and put the two states of each
# position side by side, $[\overrightarrow{h}_s ; \overleftarrow{h}_s]$. States at padding
# are 0. Inputs at padding may be any number, and must not be felt at any real position.

# %% [markdown] hint
# Left to right there is no trouble: padding is last. If a whole row is turned around,
# padding is read **first**. So turn the real part around, and leave padding at the end.

# %% [markdown] hint
# Position s of a row of length L comes from `L - 1 - s` if s < L, and stays where it is
# otherwise. As `index`, B S, that is used twice:
# `x[torch.arange(len(x))[:, None], index]` before reading, and the same on the states.


# %% solution
def read_both_ways(
    x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> Float[Tensor, "B S 2*D"]:
    """States of both directions, side by side; 0 at padding."""
    # BEGIN SOLUTION
    rows = torch.arange(len(x))[:, None]
    position = torch.arange(x.shape[1])
    index = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - position, position)
    backwards = read(x[rows, index])[rows, index]
    states = torch.cat([read(x), backwards], dim=-1)
    return states.masked_fill(~mask[..., None], 0)
    # END SOLUTION


# %% checks
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


# %% hidden
def check_both_ways_random(read_both_ways, random):  # 2 points
    x = torch.randn(4, 6, 3, generator=random)
    lengths = [2, 5, 1, 4]
    expect(
        read_both_ways(x, real_positions(lengths, 6)),
        torch.cat(halves(x, lengths), dim=-1),
        otherwise="Where every row is padded, some states are wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=clipping
# ## Clip the gradients
#
# **Goal.** Shorten the gradients of all weights by one common factor,
# $\min\left(1, \frac{\text{limit}}{\lVert g \rVert}\right)$, and return them. The length
# $\lVert g \rVert$ is that of **all** gradients together, as if they were one long
# vector. Gradients that are short enough stay as they are.

# %% [markdown] hint
# Why one factor? A step should become shorter and keep its direction. What is the length
# of a vector, if you know the lengths of its parts?

# %% [markdown] hint
# `length = torch.cat([g.flatten() for g in gradients]).norm()`. Multiply every gradient
# by `(limit / length).clamp(max=1)`.


# %% solution
def clip(
    gradients: list[Float[Tensor, "..."]], limit: float
) -> list[Float[Tensor, "..."]]:
    """The gradients, together at most ``limit`` long."""
    # BEGIN SOLUTION
    length = torch.cat([g.flatten() for g in gradients]).norm()
    factor = (limit / length).clamp(max=1)
    return [g * factor for g in gradients]
    # END SOLUTION


# %% checks
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


# %% hidden
def check_no_gradient(clip):  # 1 point
    zeros = [torch.zeros(2, 2), torch.zeros(3)]
    try:
        answer = clip(zeros, 1.0)
    except ArithmeticError as error:
        raise AssertionError(
            "Gradients that are all 0 have the length 0: do not divide by it."
        ) from error
    expect(
        answer,
        zeros,
        otherwise="Gradients that are all 0 should stay 0.",
    )
    expect_shortened(clip)


def check_clip_random(clip, random):  # 1 point
    shapes = [(3, 4), (5,), (2, 1, 2)]
    gradients = [torch.randn(shape, generator=random) for shape in shapes]
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in shapes]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, 0.7)
    expect(
        clip(gradients, 0.7),
        [parameter.grad for parameter in parameters],
        otherwise="On random gradients the answer differs from PyTorch's.",
    )
