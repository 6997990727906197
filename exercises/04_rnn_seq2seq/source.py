# %% [markdown]
# # Exercise 4: RNN seq2seq
#
# You write what this chapter added to a recurrence: the loss that padding cannot change,
# a decoder that starts from a summary, the walk of scheduled sampling, and the symbols
# that are right after an error. Letters are those of the chapter: B batch, T target, V
# symbols, D width of a state, M width of the summary.

# %% given
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2seq_lib.metrics import edit_distance

END = "<eos>"


def f(e: Float[Tensor, "B D"], s: Float[Tensor, "B D"]) -> Float[Tensor, "B D"]:
    """A recurrence without weights, in place of a GRU: the next state."""
    return (e + s.roll(1, dims=-1)).tanh()


# %% helpers
import torch

from seq2seq_lib.grading.expect import expect
from seq2seq_lib.metrics import edit_distance as distance


def one_number(answer):
    if isinstance(answer, torch.Tensor):
        assert answer.numel() == 1, (
            f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
        )
    return float(answer)


def numbers(*shape):
    return torch.linspace(0, 50, torch.Size(shape).numel()).sin().view(shape)


def states(c, read, W, b, E):
    found = [torch.tanh(c @ W.T + b)]
    for t in range(read.shape[1]):
        e = E[read[:, t]]
        found.append(torch.tanh(e + found[-1].roll(1, dims=-1)))
    return torch.stack(found, dim=1)


def walked(table, gold, own, *, first=1):
    rows = []
    for symbols, chosen in zip(gold.tolist(), own.tolist(), strict=True):
        read = symbols[:first]
        for symbol, mine in zip(symbols[first:], chosen[first:], strict=True):
            last = read[-1] if read else symbols[0]
            read.append(int(table[last].argmax()) if mine else symbol)
        rows.append(read)
    return torch.tensor(rows)


def best_of(prefix, answer):
    return min(
        distance([*prefix, *answer[said:]], answer) for said in range(len(answer) + 1)
    )


def right_after(prefix, answer):
    best = best_of(prefix, answer)
    found = [v for v in set(answer) if best_of([*prefix, v], answer) == best]
    return sorted(found + ["<eos>"] * (distance(prefix, answer) == best))


def as_list(answer):
    assert isinstance(answer, list), (
        f"Return a list of symbols, not a {type(answer).__name__}."
    )
    return sorted(answer)


# %% [markdown] question difficulty=2 minutes=10 reread=the-masked-loss
# ## The masked loss
#
# **Goal.** The mean surprise at the real symbols of a batch, where the mask is `True`:
#
# $$-\frac{\sum_{b,t} m_{bt} \log p(y_{bt} \mid y_{b,<t}, x_b)}{\sum_{b,t} m_{bt}}$$
#
# `log_p` holds the logarithms for every symbol, `target` the right symbols. What the
# model says at padding must not matter, even if its probability there is 0 and the
# logarithm is minus infinity.

# %% [markdown] hint
# First choose: one log-probability for each position, B T. Then leave out padding. How
# many numbers are left, and by how many do you divide?

# %% [markdown] hint
# `log_p.gather(2, target[..., None])[..., 0]` are the chosen ones. Select with the mask
# as an index, so that nothing is multiplied: infinity times 0 is not 0.


# %% solution
def masked_loss(
    log_p: Float[Tensor, "B T V"],
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """The mean surprise at the real target symbols; padding does not count."""
    # BEGIN SOLUTION
    chosen = log_p.gather(2, target[..., None])[..., 0]  # B T
    return -chosen[mask].mean()
    # END SOLUTION


# %% checks
def check_loss_by_hand(masked_loss):  # 3 points
    p = torch.tensor(
        [
            [[0.5, 0.2, 0.3], [0.25, 0.6, 0.15], [0.3, 0.2, 0.5], [0.9, 0.05, 0.05]],
            [[0.7, 0.125, 0.175], [0.8, 0.1, 0.1], [0.6, 0.1, 0.3], [0.4, 0.4, 0.2]],
        ]
    )
    target = torch.tensor([[0, 0, 2, 1], [1, 0, 0, 0]])
    mask = torch.tensor([[True, True, True, True], [True, False, False, False]])
    surprise = -p.log().gather(2, target[..., None])[..., 0]
    total = surprise[mask].sum()
    by_row = (surprise * mask).sum(dim=1) / mask.sum(dim=1)
    expect(
        one_number(masked_loss(p.log(), target, mask)),
        # probabilities 1/2, 1/4, 1/2, 1/20 and 1/8, all of them real
        torch.tensor([2.0, 4.0, 2.0, 20.0, 8.0]).log().mean().item(),
        otherwise="The loss is wrong: the mean of −log p of the target, over the five "
        "symbols where the mask is True.",
        mistakes={
            "The sign is missing: log p is negative, a surprise is positive.": (
                -total.item() / 5
            ),
            "Padding counts: the mask is not used, and the loss gets better with every "
            "column of padding.": surprise.mean().item(),
            "The sum is right, but it is divided by all positions: divide by the number "
            "of real symbols.": total.item() / 8,
            "The sum is divided by the number of rows: the loss of a long word would "
            "count for more. Divide by the number of real symbols.": total.item() / 2,
            "Each row is averaged first: then a symbol of a short word weighs more than "
            "one of a long word.": by_row.mean().item(),
            "The model's favourite symbol is scored, not the target.": (
                -p.log().amax(dim=2)[mask].mean().item()
            ),
            "The mask looks inverted: it is True at real symbols.": (
                surprise[~mask].mean().item()
            ),
        },
    )


# %% hidden
def check_impossible_padding(masked_loss):  # 2 points
    p = torch.tensor([[[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], [[0.2, 0.8]] * 3])
    target = torch.tensor([[0, 1, 1], [1, 0, 1]])
    mask = torch.tensor([[True, False, False], [True, True, True]])
    loss = one_number(masked_loss(p.log(), target, mask))
    message = (
        "Where padding has probability 0 the loss is no number: ∞ · 0 is not 0. Select "
        "the real symbols, or use torch.where, before anything is added up."
    )
    assert abs(loss) < float("inf"), message
    expect(
        loss,
        torch.tensor([2.0, 1.25, 5.0, 1.25]).log().mean().item(),
        otherwise="The loss should not depend on what the model says at padding.",
    )


def check_loss_random(masked_loss, random):  # 1 point
    log_p = torch.randn(4, 6, 7, generator=random).log_softmax(dim=-1)
    target = torch.randint(7, (4, 6), generator=random)
    mask = torch.arange(6) < torch.randint(1, 7, (4, 1), generator=random)
    right = torch.nn.functional.nll_loss(log_p[mask], target[mask])
    expect(
        one_number(masked_loss(log_p, target, mask)),
        right.item(),
        otherwise="On a random batch the loss is wrong.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=the-decoder
# ## From the summary to every symbol
#
# **Goal.** Run the decoder over a known answer, as teacher forcing does:
#
# $$\begin{gathered}
# g_0 = \tanh(Wc + b) \qquad g_t = f(E\,y_{t-1},\; g_{t-1}) \\
# \log p(y_t) = \operatorname{log\,softmax}(O g_t + b_O)
# \end{gathered}$$
#
# `read` is the decoder input: its first column is $y_0$, `<bos>`. The function `f` is
# given; $O$ and $b_O$ are called `O_out` and `b_out`. Return the log-probabilities of all
# symbols at every step.

# %% [markdown] hint
# One state is carried from column to column. How many states are there, with $g_0$, and
# which of them says the first symbol?

# %% [markdown] hint
# `g = torch.tanh(c @ W.T + b)`; then for each `y` in `read.unbind(1)`, first
# `g = f(E[y], g)` and then the scores `g @ O_out.T + b_out`. Stack them along axis 1.


# %% solution
def forced(
    c: Float[Tensor, "B M"],
    read: Int[Tensor, "B T"],
    W: Float[Tensor, "D M"],
    b: Float[Tensor, " D"],
    E: Float[Tensor, "V D"],
    O_out: Float[Tensor, "V D"],
    b_out: Float[Tensor, " V"],
) -> Float[Tensor, "B T V"]:
    """The log-probabilities of every next symbol while the right ones are read."""
    # BEGIN SOLUTION
    g = torch.tanh(c @ W.T + b)
    said = []
    for y in read.unbind(1):
        g = f(E[y], g)
        said.append(g @ O_out.T + b_out)
    return torch.stack(said, dim=1).log_softmax(dim=-1)
    # END SOLUTION


# %% checks
def check_forced_steps(forced):  # 4 points
    c, W, b = numbers(2, 5) * 0.5, numbers(4, 5).flip(0), numbers(4) + 0.5
    E, O_out, b_out = numbers(6, 4), numbers(4, 6).T * 2, numbers(6)
    read = torch.tensor([[1, 5, 3], [1, 4, 2]])
    every = states(c, read, W, b, E)
    scores = every[:, 1:] @ O_out.T + b_out
    g_0, e = every[:, :1], E[read]

    def said(some):
        return (some @ O_out.T + b_out).log_softmax(dim=-1)

    raw, nothing = (c @ W.T + b)[:, None], torch.zeros(2, 1, 4)
    from_raw, from_nothing = [raw], [nothing]
    for t in range(3):
        for some in (from_raw, from_nothing):
            some.append(torch.tanh(e[:, t : t + 1] + some[-1].roll(1, dims=-1)))
    expect(
        forced(c, read, W, b, E, O_out, b_out),
        scores.log_softmax(dim=-1),
        otherwise="The log-probabilities are wrong: g_0 from the summary, then f once "
        "for each column, then the output layer.",
        mistakes={
            "The tanh of the bridge is missing: g_0 = tanh(Wc + b).": said(
                torch.cat(from_raw[1:], dim=1)
            ),
            "The bridge has lost its bias b.": said(
                states(c, read, W, torch.zeros(4), E)[:, 1:]
            ),
            "The summary is not used: the decoder starts from zeros and says the same "
            "of every source.": said(torch.cat(from_nothing[1:], dim=1)),
            "Every step starts from g_0 again: carry the state on, or the decoder knows "
            "only the last symbol.": said(torch.tanh(e + g_0.roll(1, dims=-1))),
            "The scores come from the state before the step: read y_{t-1} first, g_0 "
            "says nothing.": said(every[:, :-1]),
            "These are scores, not log-probabilities: log_softmax is missing.": scores,
            "These are probabilities: the loss needs their logarithms.": (
                scores.softmax(dim=-1)
            ),
            "The softmax goes over the steps: it belongs over the symbols, the last "
            "axis.": scores.log_softmax(dim=1),
            "The output layer has lost its bias b_out.": (
                (every[:, 1:] @ O_out.T).log_softmax(dim=-1)
            ),
        },
    )


# %% hidden
def check_forced_random(forced, random):  # 2 points
    def drawn(*shape):
        return torch.randn(*shape, generator=random)

    c, W, b = drawn(3, 2), drawn(5, 2), drawn(5)
    E, O_out, b_out = drawn(7, 5), drawn(7, 5), drawn(7)
    for steps in (1, 6):
        read = torch.randint(7, (3, steps), generator=random)
        scores = states(c, read, W, b, E)[:, 1:] @ O_out.T + b_out
        expect(
            forced(c, read, W, b, E, O_out, b_out),
            scores.log_softmax(dim=-1),
            otherwise="With other sizes, or with one step only, the log-probabilities "
            "are wrong.",
        )


# %% [markdown] question difficulty=3 minutes=20 reread=labs#scheduled-sampling
# ## What scheduled sampling reads
#
# **Goal.** Find what the decoder reads in training with scheduled sampling. The model
# is a table here: row `table[v]` holds the log-probability of every symbol after `v`.
# `gold` is the decoder input of teacher forcing and begins with `<bos>`.
#
# The first column is always read as it is. From the second on, a row reads its own
# choice where `drawn` is less than `rate`, and the gold symbol elsewhere. Its own choice
# is the most probable symbol after the one it **has just read**. `drawn` has a number
# from 0 (included) to 1 (excluded) for every position.

# %% [markdown] hint
# After an own choice, the next choice depends on it. So can all columns be found at
# once, or must one walk?

# %% [markdown] hint
# Start with `token = gold[:, 0]`. For each later column t:
# `token = torch.where(drawn[:, t] < rate, table[token].argmax(dim=-1), gold[:, t])`.
# Keep every token and stack them.


# %% solution
def sampled_input(
    table: Float[Tensor, "V V"],
    gold: Int[Tensor, "B T"],
    drawn: Float[Tensor, "B T"],
    rate: float,
) -> Int[Tensor, "B T"]:
    """What the decoder reads if some gold symbols are replaced by its own choices."""
    # BEGIN SOLUTION
    token = gold[:, 0]
    read = [token]
    for t in range(1, gold.shape[1]):
        own = table[token].argmax(dim=-1)
        token = torch.where(drawn[:, t] < rate, own, gold[:, t])
        read.append(token)
    return torch.stack(read, dim=1)
    # END SOLUTION


# %% checks
def check_what_is_read(sampled_input):  # 4 points
    # after 1 comes 4, after 4 comes 6, after 6 comes 5, after 5 comes 3, after 3 comes 7
    after = torch.tensor([0, 4, 2, 7, 6, 3, 5, 1])
    table = (torch.eye(8)[after] * 3).log_softmax(dim=-1)
    gold = torch.tensor([[1, 3, 5, 4, 6], [1, 6, 4, 3, 5], [1, 5, 3, 6, 4]])
    drawn = torch.tensor(
        [
            [0.9, 0.2, 0.1, 0.8, 0.3],
            [0.1, 0.7, 0.2, 0.1, 0.9],
            [0.3, 0.6, 0.9, 0.4, 0.2],
        ]
    )
    own = drawn < 0.5
    after_gold = torch.cat([gold[:, :1], after[gold[:, :-1]]], dim=1)
    expect(
        sampled_input(table, gold, drawn, 0.5),
        walked(table, gold, own),
        otherwise="What is read is wrong: column by column, the most probable symbol "
        "after the one just read where drawn < rate, gold elsewhere.",
        mistakes={
            "Own and gold are swapped: drawn < rate means the own choice.": (
                walked(table, gold, ~own)
            ),
            "Own choices are made after gold symbols: the model must live with what it "
            "has really read, also if that was its own.": torch.where(
                own, after_gold, gold
            ),
            "The first column is replaced too: every answer begins with <bos>.": (
                walked(table, gold, own, first=0)
            ),
            "One draw decides for the whole word: every position has its own.": (
                walked(table, gold, own[:, :1].expand_as(own))
            ),
            "One draw decides for the whole batch: every row has its own.": (
                walked(table, gold, own[:1].expand_as(own))
            ),
            "The choice is taken after the symbol that it replaces: look one column "
            "back.": torch.where(own, after[gold], gold).index_copy(
                1, torch.tensor([0]), gold[:, :1]
            ),
            "This is greedy decoding: where drawn is not less than the rate, gold is "
            "read.": walked(table, gold, torch.ones_like(own)),
            "This is teacher forcing: nothing is replaced.": gold,
            "The table is read by columns: row table[v] belongs to the symbol v that was "
            "read.": walked(table.T, gold, own),
        },
    )


# %% hidden
def check_rate_of_zero(sampled_input):  # 1 point
    table = (torch.eye(5).roll(1, dims=0) * 2).log_softmax(dim=-1)
    gold = torch.tensor([[1, 3, 3, 4], [1, 4, 2, 3]])
    expect(
        sampled_input(table, gold, torch.zeros(2, 4), 0.0),
        gold,
        otherwise="A rate of 0 must be teacher forcing, also where the number drawn is "
        "0: less than the rate, not equal to it.",
    )
    all_own = torch.ones(2, 4, dtype=torch.bool)
    expect(
        sampled_input(table, gold, torch.zeros(2, 4), 1.0),
        walked(table, gold, all_own),
        otherwise="A rate of 1 must be greedy decoding: only the first column is given.",
    )


def check_sampling_random(sampled_input, random):  # 1 point
    table = torch.randn(9, 9, generator=random).log_softmax(dim=-1)
    gold = torch.randint(3, 9, (5, 7), generator=random)
    gold[:, 0] = 1
    drawn = torch.rand(5, 7, generator=random)
    for rate in (0.3, 0.8):
        expect(
            sampled_input(table, gold, drawn, rate),
            walked(table, gold, drawn < rate),
            otherwise="With a random table some symbols read are wrong.",
        )


# %% [markdown] question difficulty=4 minutes=25 reread=labs#exposure-bias-in-pairs
# ## Right after an error
#
# **Goal.** A decoder has said `prefix`, which may hold errors, and `answer` is right.
# Which next symbols are right now? Those that make no further edit necessary: compare
# the prefix with all beginnings of the answer, from the empty one to the whole. The
# nearest are the places where it may stand, and the symbols behind these places are
# right. Behind the whole answer stands `END`.
#
# Return the right symbols as a list, each once, in any order. `edit_distance` and `END`
# are given. For the answer `K AE T` and the prefix `K EH`, return `AE` and `T`.

# %% [markdown] hint
# An answer of n symbols has n + 1 beginnings, `answer[:0]` to `answer[:n]`. Several may
# be equally near.

# %% [markdown] hint
# Put the n + 1 distances into a list and take their minimum. With
# `behind = [*answer, END]`, the symbol behind `answer[:said]` is `behind[said]`. A set
# keeps each symbol once.


# %% solution
def right_next(prefix: list[str], answer: list[str]) -> list[str]:
    """The next symbols after which no further edit becomes necessary."""
    # BEGIN SOLUTION
    behind = [*answer, END]
    distances = [
        edit_distance(prefix, answer[:said]) for said in range(len(answer) + 1)
    ]
    nearest = min(distances)
    return sorted({v for v, d in zip(behind, distances, strict=True) if d == nearest})
    # END SOLUTION


# %% checks
def check_before_anything(right_next):  # 1 point
    expect(
        as_list(right_next([], ["K", "AE", "T"])),
        ["K"],
        otherwise="Before anything is said, only the first symbol is right.",
        mistakes={
            "The empty beginning is left out: before anything is said, K is right.": [
                "AE"
            ],
            "You return the last symbol of the nearest beginning, which was said: right "
            "is the one behind it.": ["T"],
        },
    )


def check_the_end(right_next):  # 1 point
    expect(
        as_list(right_next(["K", "EH", "T"], ["K", "AE", "T"])),
        ["<eos>"],
        otherwise="After K EH T only the end is right: K AE T is one edit away.",
        mistakes={
            "The whole answer is a beginning too, and END stands behind it.": [
                "AE",
                "T",
            ],
            "Behind the whole answer stands END: you return nothing.": [],
        },
    )


def check_after_one_error(right_next):  # 2 points
    # K T is one edit away from K, from K AE and from K AE T
    expect(
        as_list(right_next(["K", "T"], ["K", "AE", "T"])),
        ["<eos>", "AE", "T"],
        otherwise="After K T, all of AE, T and END are right if the answer is K AE T: T "
        "may have come too early, in place of AE, or behind an AE left out.",
        mistakes={
            "The prefix may stand at several places. You return what is behind the last "
            "of them only.": ["<eos>"],
            "The prefix may stand at several places. You return what is behind the first "
            "of them only.": ["AE"],
            "You count symbols: after two of them the third. The edit distance may put "
            "the prefix at other places too.": ["T"],
        },
    )


# %% hidden
def check_each_once(right_next):  # 1 point
    answer = ["B", "AA", "B", "AA"]
    found = as_list(right_next(["AA"], answer))
    assert len(found) == len(set(found)), (
        "A symbol is listed twice: it stands behind two of the nearest beginnings, and "
        "should be returned once."
    )
    expect(
        found,
        right_after(["AA"], answer),
        otherwise="If a symbol stands in the answer twice, the right ones are wrong.",
    )


def check_right_random(right_next, random):  # 1 point
    for _ in range(20):
        lengths = torch.randint(1, 6, (2,), generator=random).tolist()
        prefix, answer = (
            ["KTSR"[i] for i in torch.randint(4, (n,), generator=random).tolist()]
            for n in lengths
        )
        expect(
            as_list(right_next(prefix, answer)),
            right_after(prefix, answer),
            otherwise="On random prefixes and answers some right symbols are missing or "
            "some are not right.",
        )
