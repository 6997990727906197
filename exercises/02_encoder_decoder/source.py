# %% [markdown]
# # Exercise 2: The encoder–decoder abstraction
#
# You write what drives a decoder, and what a decoder of two tables computes: one step,
# the probability of an answer, greedy search, the reorder of a state, and the proof that
# nothing is lost. Axes are those of the chapter: B batch, S source, T target, D width of
# the memory or number of letters, V sounds, R rows kept. `PAD`, `BOS` and `EOS` are the
# special symbols.

# %% given
import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq_lib.interface import Decoder, EncoderOutput
from seq2seq_lib.models.lookup import LookupDecoder, OneHotEncoder

PAD, BOS, EOS = 0, 1, 2


# %% given
def lookup(letter, previous, source):
    """A decoder with these two tables, and the memory of these sources."""
    decoder = LookupDecoder(*letter.shape)
    decoder.load_state_dict({"letter": letter, "previous": previous})
    return decoder.requires_grad_(False), OneHotEncoder(len(letter))(
        source, source != 0
    )


def scored(letter, previous, source, target):
    """Your log_probability, with a decoder of two tables."""
    return log_probability(*lookup(letter, previous, source), target)


def spoken(letter, previous, source, max_length):
    """Your greedy, with a decoder of two tables."""
    return greedy(*lookup(letter, previous, source), max_length)


def old_and_new(state, rows):
    """The old state after your reorder, and the new one."""
    new = reorder(state, rows)
    return state, new


# %% helpers
import itertools

import torch

from seq2seq_lib.grading.expect import expect, same

NEVER = -1e4


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def filled(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def factor(letter, previous, x, t, before):
    at = x[min(t, len(x) - 1)]
    return (letter[at] + previous[before]).log_softmax(dim=0)


def factors(letter, previous, x, y, *, read=None, still=False):
    """log p of every symbol of y, by hand; read and still are for mistakes."""
    read = [1, *y[:-1]] if read is None else read
    steps = enumerate(zip(read, y, strict=True))
    return torch.stack(
        [
            factor(letter, previous, x, 0 if still else t, b)[y_t]
            for t, (b, y_t) in steps
        ]
    )


def speech(letter, previous, x, longest, *, repeat=False, still=False, first=1):
    """The greedy answer by hand, EOS included if it comes."""
    said, before = [], first
    while len(said) < longest and said[-1:] != [2]:
        scores = factor(letter, previous, x, 0 if still else len(said), before)
        said.append(int(scores.argmax()))
        before = first if repeat else said[-1]
    return said


def tables(letters, sounds, seed):
    """Random tables that say one sound for each letter, and the end for EOS."""
    letter = numbers(letters, sounds, seed=seed) * 2
    previous = numbers(sounds, sounds, seed=seed + 1) * 2
    letter[:, :4] = NEVER
    letter[2] = NEVER
    letter[2, 2], letter[2, 4] = 0.0, -50.0
    previous[2, 4] = 100.0  # whoever reads EOS goes on
    previous[:, 2] = 0.0
    return letter, previous


def brute_force(p, length):
    """What has ended by some length, and what is going, over all answers."""
    sounds = [i for i in range(len(p)) if i > 3]
    ended = going = 0.0
    for size in range(length + 1):
        for said in itertools.product(sounds, repeat=size):
            path = [1, *said]
            reached = 1.0
            for before, after in itertools.pairwise(path):
                reached *= p[before, after].item()
            ended += reached * p[path[-1], 2].item()
            going += reached * (1 - p[path[-1], 2].item()) * (size == length)
    return ended, going


def masses_of(p, length, *, start=None, absorb=True, exactly=False):
    reached = torch.eye(len(p))[1] if start is None else start
    ended = 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended = reached[2].item() + (0.0 if exactly else ended)
        if absorb:
            reached = reached * (torch.arange(len(p)) != 2)
    return ended, (reached.sum() - reached[2]).item()


def babbler():
    p = torch.zeros(6, 6)
    p[1, [4, 5, 2]] = torch.tensor([0.5, 0.25, 0.25])
    p[4, [4, 5, 2]] = torch.tensor([0.25, 0.5, 0.25])
    p[5, [4, 5, 2]] = torch.tensor([0.2, 0.2, 0.6])
    p[2, [4, 5, 2]] = torch.tensor([0.25, 0.25, 0.5])
    return p


# %% [markdown] question difficulty=2 minutes=10 reread=the-same-three-letters-through-the-contract
# ## One step of two tables
#
# **Goal.** Row $b$ of a batch stands at the letter `x_t[b]` and has just said the sound
# `before[b]`. Add what the two tables say of every next sound,
# $s_t = \texttt{letter}[x_t] + \texttt{previous}[y_{t-1}]$, and return its
# log-probabilities. Scores may be large, such as 200; the logarithms are finite all the
# same.

# %% [markdown] hint
# A table indexed by a tensor of B numbers gives B rows. What makes scores of V sounds
# into logarithms of probabilities?

# %% [markdown] hint
# `letter[x_t]` and `previous[before]` are B V each. `log_softmax` over the sounds, which
# are the last axis.


# %% solution
def look_up(
    letter: Float[Tensor, "D V"],
    previous: Float[Tensor, "V V"],
    x_t: Int[Tensor, " B"],
    before: Int[Tensor, " B"],
) -> Float[Tensor, "B V"]:
    """Log-probabilities of the next sound."""
    # BEGIN SOLUTION
    return (letter[x_t] + previous[before]).log_softmax(dim=-1)
    # END SOLUTION


# %% checks
def check_one_step(look_up):  # 2 points
    letter, previous = numbers(6, 4), numbers(4, 4, seed=1)
    x_t, before = torch.tensor([5, 2, 2]), torch.tensor([1, 3, 0])
    scores = letter[x_t] + previous[before]
    right = scores.log_softmax(dim=-1)
    expect(
        look_up(letter, previous, x_t, before),
        right,
        otherwise="The log-probabilities are wrong: log softmax of letter[x_t] + "
        "previous[y_{t-1}].",
        mistakes={
            "These are scores: their exponentials do not sum to 1 until log_softmax has "
            "been taken.": scores,
            "These are probabilities: the contract wants their logarithms.": right.exp(),
            "The probabilities sum to 1 over the batch: they should over the sounds, the "
            "last axis.": scores.log_softmax(dim=0),
            "The second table is read by columns: row y_{t-1} says what follows.": (
                (letter[x_t] + previous[:, before].T).log_softmax(dim=-1)
            ),
            "The letter is not used.": previous[before].log_softmax(dim=-1),
            "The sound before is not used.": letter[x_t].log_softmax(dim=-1),
            "The tables are multiplied: weights are multiplied, so their logarithms are "
            "added.": (letter[x_t] * previous[before]).log_softmax(dim=-1),
            "Each table is made a distribution by itself: the sum of two has to be made "
            "one again.": letter[x_t].log_softmax(-1)
            + previous[before].log_softmax(-1),
        },
    )


# %% hidden
def check_one_step_random(look_up, random):  # 1 point
    letter = torch.randn(7, 5, generator=random)
    previous = torch.randn(5, 5, generator=random)
    x_t = torch.randint(0, 7, (6,), generator=random)
    before = torch.randint(0, 5, (6,), generator=random)
    rows = zip(x_t.tolist(), before.tolist(), strict=True)
    right = [(letter[a] + previous[b]).softmax(0).log() for a, b in rows]
    expect(
        look_up(letter, previous, x_t, before),
        torch.stack(right),
        otherwise="On random tables some log-probabilities are wrong.",
    )


def check_one_step_large(look_up):  # 1 point
    letter, previous = torch.tensor([[200.0, 0.0, 100.0]]), torch.zeros(3, 3)
    answer = look_up(letter, previous, torch.tensor([0]), torch.tensor([1]))
    assert not bool(torch.isnan(answer).any()), (
        "Large scores give what is no number: exp(200) overflows. log_softmax does not."
    )
    assert bool(torch.isfinite(answer).all()), (
        "A probability became 0 before its logarithm was taken: log_softmax does both "
        "at once."
    )
    expect(
        answer,
        torch.tensor([[0.0, -200.0, -100.0]]),
        otherwise="Log-probabilities of large scores are wrong.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=the-contract
# ## The probability of an answer
#
# **Goal.** $\log p(y \mid x) = \sum_t \log p(y_t \mid y_{<t}, x)$ for every row of a
# batch, with the calls of the contract. Each row of `target` is an answer, then `EOS`,
# then `PAD`. The factor of `EOS` counts, padding does not.

# %% [markdown] hint
# What does the decoder read before it says the first symbol of the answer? And before it
# says the second?

# %% [markdown] hint
# `state = decoder.init_state(memory)`, then for every column `scores, state =
# decoder.step(token, state)` with `token` the column before, `BOS` at first. Add
# `scores.gather(1, column[:, None])[:, 0]` where the column is not `PAD`.


# %% solution
def log_probability(
    decoder: Decoder, memory: EncoderOutput, target: Int[Tensor, "B T"]
) -> Float[Tensor, " B"]:
    """The log-probability of each row's answer."""
    # BEGIN SOLUTION
    state, total = decoder.init_state(memory), torch.zeros(len(target))
    token = torch.full((len(target),), BOS)
    for column in target.unbind(1):
        scores, state = decoder.step(token, state)
        chosen = scores.gather(1, column[:, None])[:, 0]
        total += chosen.masked_fill(column == PAD, 0.0)
        token = column
    return total
    # END SOLUTION


# %% checks
def check_log_probability(scored):  # 3 points
    letter, previous = numbers(7, 8), numbers(8, 8, seed=1)
    xs, ys = [[4, 6, 5, 2], [5, 4, 2]], [[5, 4, 7, 2], [6, 2]]

    def total(change=lambda f: f.sum(), **options):
        pairs = zip(xs, ys, strict=True)
        return torch.stack(
            [change(factors(letter, previous, x, y, **options)) for x, y in pairs]
        )

    def reading(read):
        pairs = zip(xs, ys, strict=True)
        return torch.stack(
            [factors(letter, previous, x, y, read=read(y)).sum() for x, y in pairs]
        )

    padded = [factors(letter, previous, xs[0], ys[0])]
    padded += [factors(letter, previous, xs[1], [6, 2, 0, 0])]
    right = total()
    expect(
        scored(letter, previous, filled(xs), filled(ys)),
        right,
        otherwise="The log-probabilities are wrong: one step for every symbol, each "
        "reading the symbol before it, BOS at first.",
        mistakes={
            "The end is missing: y_T is EOS, and its factor counts.": total(
                lambda f: f[:-1].sum()
            ),
            "Padding is scored too: behind EOS there is nothing to say.": torch.stack(
                [f.sum() for f in padded]
            ),
            "The decoder reads the symbol that it is about to say: it should read the "
            "one before.": reading(lambda y: y),
            "The decoder reads BOS at every step: hand it what was said.": reading(
                lambda y: [1] * len(y)
            ),
            "The decoder reads PAD at first: it begins with BOS.": reading(
                lambda y: [0, *y[:-1]]
            ),
            "The state is not carried on: use the one that step returns.": total(
                still=True
            ),
            "This is the mean of the factors: a product has no mean, so add the "
            "logarithms up.": total(lambda f: f.mean()),
            "Probabilities are added up: they multiply, and their logarithms add up.": (
                total(lambda f: f.exp().sum())
            ),
            "This is the probability: expected its logarithm.": right.exp(),
            "All rows are added up: every row is an answer of its own.": right.sum(),
        },
    )


# %% hidden
def check_log_probability_random(scored, random):  # 2 points
    letter = torch.randn(9, 7, generator=random)
    previous = torch.randn(7, 7, generator=random)
    sizes = torch.randint(1, 6, (4, 2), generator=random).tolist()
    xs = [[*torch.randint(4, 9, (a,), generator=random).tolist(), 2] for a, _ in sizes]
    ys = [[*torch.randint(4, 7, (b,), generator=random).tolist(), 2] for _, b in sizes]
    pairs = zip(xs, ys, strict=True)
    expect(
        scored(letter, previous, filled(xs), filled(ys)),
        torch.stack([factors(letter, previous, x, y).sum() for x, y in pairs]),
        otherwise="On random answers some log-probabilities are wrong.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=whole-words
# ## Say it greedily
#
# **Goal.** Answer every source of a batch: take the most probable symbol, hand it back,
# and go on until `EOS`, or until `max_length` symbols were said. Return one list of whole
# numbers for each row, without `BOS` and `EOS`. Rows end at different times.

# %% [markdown] hint
# A row that has said `EOS` may go on being stepped, if what it says no longer counts.
# When may the loop stop?

# %% [markdown] hint
# Keep `done`, one boolean for each row. After `token = scores.argmax(dim=1)` set `done |=
# token == EOS`, and append `token[b].item()` only to rows that are not done.


# %% solution
def greedy(decoder: Decoder, memory: EncoderOutput, max_length: int) -> list[list[int]]:
    """The greedy answer to every source."""
    # BEGIN SOLUTION
    state, token = decoder.init_state(memory), torch.full((len(memory),), BOS)
    said: list[list[int]] = [[] for _ in range(len(memory))]
    done = torch.zeros(len(memory), dtype=torch.bool)
    for _ in range(max_length):
        scores, state = decoder.step(token, state)
        token = scores.argmax(dim=1)
        done |= token == EOS
        if done.all():
            break
        for row in (~done).nonzero()[:, 0].tolist():
            said[row].append(token[row].item())
    return said
    # END SOLUTION


# %% checks
def check_greedy(spoken):  # 3 points
    letter, previous = tables(9, 9, seed=8)
    xs = [[4, 7, 5, 6, 2], [6, 5, 2]]
    answer = spoken(letter, previous, filled(xs), 8)
    ended = [speech(letter, previous, x, 8) for x in xs]
    right = [said[:-1] for said in ended]
    assert isinstance(answer, list), (
        f"Expected a list of lists, got {type(answer).__name__}."
    )
    assert not any(isinstance(row, torch.Tensor) for row in answer), (
        "The rows are tensors: expected lists of whole numbers, as tolist() gives."
    )
    expect(
        answer,
        right,
        otherwise="The answers are wrong: the most probable symbol at each step, handed "
        "back, until EOS.",
        mistakes={
            "EOS stands in the answers: it says where they end, and is no part.": ended,
            "BOS stands in the answers: it is read, and never said.": [
                [1, *said] for said in right
            ],
            "A row goes on speaking behind its EOS while others are not done: what it "
            "says then does not count.": [right[0], [*right[1], 4]],
            "All rows stop when the first one ends: the others have more to say.": [
                said[: len(right[1])] for said in right
            ],
            "The state is the first one at every step: use the one that step returns.": [
                speech(letter, previous, x, 8, still=True) for x in xs
            ],
            "BOS is read at every step: the decoder should read what it said.": [
                speech(letter, previous, x, 8, repeat=True)[:-1] for x in xs
            ],
        },
    )


def check_greedy_stops(spoken):  # 1 point
    letter, previous = tables(9, 9, seed=8)
    xs = [[4, 7, 5, 6, 2], [6, 5, 2]]
    answer = spoken(letter, previous, filled(xs), 3)
    ended = [speech(letter, previous, x, 8) for x in xs]
    expect(
        answer,
        [ended[0][:3], ended[1][:2]],
        otherwise="With max_length=3 a longer answer should be cut to three symbols.",
        mistakes={
            "One symbol too many is said: at most max_length.": [
                ended[0][:4],
                ended[1][:2],
            ],
            "One symbol too few is said: BOS does not count for max_length.": [
                ended[0][:2],
                ended[1][:2],
            ],
            "An answer that was cut is thrown away: return what was said so far.": [
                [],
                ended[1][:2],
            ],
        },
    )


# %% hidden
def check_greedy_random(spoken, random):  # 2 points
    seed = int(torch.randint(0, 10**6, (1,), generator=random))
    letter, previous = tables(9, 10, seed=seed)
    sizes = torch.randint(1, 7, (5,), generator=random).tolist()
    xs = [[*torch.randint(4, 9, (n,), generator=random).tolist(), 2] for n in sizes]
    expect(
        spoken(letter, previous, filled(xs), 9),
        [speech(letter, previous, x, 9)[:-1] for x in xs],
        otherwise="On random tables some answers are wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=what-the-contract-promises
# ## Reorder a state
#
# **Goal.** Keep the rows of a decoder's state that `rows` names, in this order; a row may
# be repeated or left out. The state is a dictionary: `states` B S D, `mask` B S and
# `summary` B D of the memory, `hidden` L B D of a network with L layers, whose rows are
# its **second** axis, and `position`, one whole number for all rows. Return a new
# dictionary. The old state must stay as it was: a search may step from it again.

# %% [markdown] hint
# All that belongs to a row has to move with it. What does not belong to a row?

# %% [markdown] hint
# `tensor[rows]` keeps rows of the first axis and `tensor[:, rows]` of the second; both
# make a new tensor.


# %% solution
def reorder(
    state: dict[str, Tensor | int], rows: Int[Tensor, " R"]
) -> dict[str, Tensor | int]:
    """A state with these rows, in this order."""
    # BEGIN SOLUTION
    return {
        "states": state["states"][rows],
        "mask": state["mask"][rows],
        "summary": state["summary"][rows],
        "hidden": state["hidden"][:, rows],
        "position": state["position"],
    }
    # END SOLUTION


# %% checks
def check_reorder_rows(reorder):  # 2 points
    state = {
        "states": numbers(3, 5, 2),
        "mask": torch.arange(5) < torch.tensor([[5], [2], [3]]),
        "summary": numbers(3, 2, seed=1),
        "hidden": numbers(4, 3, 2, seed=2),
        "position": 3,
    }
    rows = torch.tensor([2, 0, 1])
    new = reorder(state, rows)
    assert isinstance(new, dict), f"Expected a dictionary, got {type(new).__name__}."
    assert new.keys() == state.keys(), (
        f"The new state has {sorted(map(str, new))}, the old one {sorted(state)}."
    )
    expect(
        new["summary"],
        state["summary"][rows],
        otherwise="The summaries are wrong: row i of the new state is row rows[i] of "
        "the old one.",
        mistakes={
            "Nothing moved: rows would go on with the state of another answer.": (
                state["summary"]
            ),
            "Rows are sent where they should be fetched: new row i is old row "
            "rows[i].": state["summary"][rows.argsort()],
        },
    )
    expect(
        new["states"],
        state["states"][rows],
        otherwise="The states are wrong: move the rows, keep positions and features.",
        mistakes={
            "The states of the memory stay behind: a row would read another's source.": (
                state["states"]
            ),
        },
    )
    expect(
        new["mask"],
        state["mask"][rows],
        otherwise="The mask is wrong: it moves as the states do.",
        mistakes={
            "The mask stays behind: a row would take another's padding for real.": (
                state["mask"]
            ),
        },
    )


def check_reorder_hidden(reorder):  # 1 point
    state = {
        "states": numbers(3, 5, 2),
        "mask": torch.ones(3, 5, dtype=torch.bool),
        "summary": numbers(3, 2, seed=1),
        "hidden": numbers(4, 3, 2, seed=2),
        "position": 3,
    }
    rows = torch.tensor([2, 0, 0])
    new = reorder(state, rows)
    expect(
        new["hidden"],
        state["hidden"][:, rows],
        otherwise="The hidden states are wrong: L B D, so rows are the second axis.",
        mistakes={
            "The layers are reordered: rows are the second axis of `hidden`.": (
                state["hidden"][rows]
            ),
            "The hidden states stay behind: a row would go on with another's past.": (
                state["hidden"]
            ),
        },
    )
    expect(
        new["position"],
        3,
        otherwise="The position is wrong: it is the same number as before.",
        mistakes={
            "The position begins again: to reorder is not to start anew.": 0,
            "The position is a tensor of rows: it is one number for all rows.": (
                torch.tensor([3, 3, 3])
            ),
        },
    )


# %% hidden
def check_old_state_stays(old_and_new, random):  # 2 points
    state = {
        "states": torch.randn(4, 3, 2, generator=random),
        "mask": torch.rand(4, 3, generator=random) < 0.5,
        "summary": torch.randn(4, 2, generator=random),
        "hidden": torch.randn(2, 4, 5, generator=random),
        "position": 7,
    }
    rows = torch.randint(0, 4, (6,), generator=random)
    old, new = old_and_new(state, rows)
    assert same(old, state), (
        "The old state was changed: return a new dictionary with new tensors, a search "
        "may step from the old one again."
    )
    right = {name: state[name][rows] for name in ("states", "mask", "summary")}
    expect(
        new,
        right | {"hidden": state["hidden"][:, rows], "position": 7},
        otherwise="Where rows are more than before, the new state is wrong.",
    )


# %% [markdown] question difficulty=4 minutes=25 reread=do-all-answers-together-have-probability-1
# ## Nothing is lost
#
# **Goal.** A babbler says what comes next by what came before: `p[i, j]` is the
# probability that symbol $j$ follows symbol $i$, and an answer starts behind `BOS`.
# Return two numbers: the probability that an answer has **ended** with at most `length`
# sounds, and that it is **still going**, that is, has more. Behind `EOS` nothing follows,
# whatever row `EOS` of the table says. Answers are too many to list; a row of V
# probabilities, moved step by step, is enough.

# %% [markdown] hint
# Let `reached[i]` be the probability that an answer is at symbol $i$ and has not ended.
# Before the first step it is 1 at `BOS`. What is it one step later?

# %% [markdown] hint
# `reached @ p` is where it goes. What arrives at `EOS` has ended: add it to the first
# sum and set it to 0. `length` sounds and their end take `length + 1` steps.


# %% solution
def masses(p: Float[Tensor, "V V"], length: int) -> tuple[float, float]:
    """What has ended with at most this many sounds, and what is still going."""
    # BEGIN SOLUTION
    reached, ended = torch.zeros(len(p)), 0.0
    reached[BOS] = 1.0
    for _ in range(length + 1):
        reached = reached @ p
        ended += reached[EOS].item()
        reached[EOS] = 0.0
    return ended, reached.sum().item()
    # END SOLUTION


# %% checks
def check_masses_of_nothing(masses):  # 1 point
    answer = masses(babbler(), 0)
    assert isinstance(answer, tuple | list), "Return two numbers: ended, still going."
    assert len(answer) == 2, f"Return two numbers, not {len(answer)}."
    start = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.5, 0.5])
    expect(
        tuple(map(float, answer)),
        (0.25, 0.75),
        otherwise="With no sound at all: BOS is followed by EOS with 1/4, and by a sound "
        "with 3/4.",
        mistakes={
            "One step is missing: `length` sounds and their end take `length` + 1 "
            "steps.": (0.0, 1.0),
            "The two numbers are swapped: first what has ended.": (0.75, 0.25),
            "The babbler does not start behind BOS.": masses_of(
                babbler(), 0, start=start
            ),
            "What has ended is still going too: take it out.": (0.25, 1.0),
            "The table is read by columns: row i says what follows symbol i.": (
                0.0,
                0.0,
            ),
        },
    )


def check_masses_by_hand(masses):  # 2 points
    p = babbler()
    expect(
        tuple(map(float, masses(p, 3))),
        brute_force(p, 3),
        otherwise="With at most three sounds the two probabilities are wrong.",
        mistakes={
            "What ends with exactly `length` sounds is returned: add up all that ended "
            "before.": masses_of(p, 3, exactly=True),
            "Ended answers go on behind EOS, and end again: nothing follows EOS.": (
                masses_of(p, 3, absorb=False)
            ),
            "One sound too many: stop after `length` + 1 steps.": masses_of(p, 4),
        },
    )


# %% hidden
def check_masses_random(masses, random):  # 2 points
    p = torch.rand(7, 7, generator=random)
    p[:, [0, 1, 3]] = 0.0
    p /= p.sum(dim=1, keepdim=True)
    for length in (1, 4):
        expect(
            tuple(map(float, masses(p, length))),
            brute_force(p, length),
            otherwise="On a random table the two probabilities are wrong.",
        )


def check_masses_without_end(masses):  # 1 point
    p = babbler()
    p[:, 2] = 0.0
    p /= p.sum(dim=1, keepdim=True).clamp(min=1e-9)
    expect(
        tuple(map(float, masses(p, 40))),
        (0.0, 1.0),
        otherwise="Where EOS is impossible nothing ends, and all is still going.",
    )
