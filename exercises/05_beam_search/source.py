# %% [markdown]
# # Exercise 5: Beam search
#
# You write the parts of a search: the score that compares answers of different lengths,
# one step of a beam, what each prefix takes over from its parent, what a beam costs, and
# the choice among the likely symbols only. Letters are those of the chapter: W prefixes,
# V symbols, k the width of the beam, L the length of an answer. Scores are logarithms of
# probabilities, so they are negative and larger is better.

# %% given
import torch
from jaxtyping import Float, Int
from torch import Tensor

PAD, BOS, EOS = 0, 1, 2

# A total log-probability, the prefix that is continued, the symbol it gains.
Candidate = tuple[float, int, int]

# %% helpers
import itertools

import torch

from seq2seq_lib.grading.expect import expect

EOS = 2


def winner(scores):
    best = int(scores.argmax())
    return best, float(scores[best])


def place_and_score(answer):
    assert isinstance(answer, tuple | list), (
        "Return two things, the place of the best answer and its score."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    return int(answer[0]), float(answer[1])


def all_candidates(table):
    W, V = table.shape
    return [
        (float(table[w, v]), w, v) for w, v in itertools.product(range(W), range(V))
    ]


def advanced(candidates, k):
    ranked = sorted(candidates, reverse=True)
    ended = [c for c in ranked[:k] if c[2] == EOS]
    return [c for c in ranked if c[2] != EOS][:k], ended


def both_lists(answer):
    assert isinstance(answer, tuple | list), (
        "Return two lists of candidates: what goes on, and what has ended."
    )
    assert len(answer) == 2, f"Return two lists, not {len(answer)}."
    return tuple(
        [(float(total), int(parent), int(symbol)) for total, parent, symbol in part]
        for part in answer
    )


def kept(log_p, keep):
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


def fewest(p, top_p):
    keep = torch.zeros_like(p, dtype=torch.bool)
    for row, chosen in zip(p.tolist(), keep, strict=True):
        reached = 0.0
        for symbol in sorted(range(len(row)), key=lambda v: -row[v]):
            if reached < top_p:
                chosen[symbol] = True
            reached += row[symbol]
    return keep


# %% [markdown] question difficulty=1 minutes=10 reread=the-sign-trap
# ## The best of several answers
#
# **Goal.** A search has finished N answers. Find the one with the best score
# $\log p / L^{\alpha}$, and return its place (0 for the first) and its score. `symbols`
# counts the symbols of each answer **without** its `EOS`; L counts the `EOS` as well.

# %% [markdown] hint
# Scores are negative. Dividing by a larger number brings them nearer to zero: is that up
# or down?

# %% [markdown] hint
# `scores = log_p / (symbols + 1) ** alpha`, and then `scores.argmax()` and
# `scores.max()`; `.item()` makes a plain number of either.


# %% solution
def best_answer(
    log_p: Float[Tensor, " N"], symbols: Int[Tensor, " N"], alpha: float
) -> tuple[int, float]:
    """The place and the score of the best answer."""
    # BEGIN SOLUTION
    scores = log_p / (symbols + 1) ** alpha
    best = int(scores.argmax())
    return best, scores[best].item()
    # END SOLUTION


# %% checks
def check_best_by_hand(best_answer):  # 2 points
    log_p = torch.tensor([-2.0, -2.4, -3.5, -9.0])
    symbols = torch.tensor([1, 3, 4, 2])
    length = symbols + 1
    scores = log_p / length**0.75
    expect(
        place_and_score(best_answer(log_p, symbols, 0.75)),
        winner(scores),
        otherwise="The best answer or its score is wrong: the largest log p / L^α, where "
        "L counts the EOS too.",
        mistakes={
            "Short answers win: log p is negative, so divide by L^α; to multiply by it "
            "lowers long answers.": winner(log_p * length**0.75),
            "The EOS is not counted: L is one more than `symbols`.": winner(
                log_p / symbols**0.75
            ),
            "α is the exponent of the length, not a factor of it.": winner(
                log_p / (0.75 * length)
            ),
            "α is not used: this is the mean over the symbols, as with α = 1.": winner(
                log_p / length
            ),
            "The length is not used: this is log p alone, as with α = 0.": winner(
                log_p
            ),
            "This is the worst answer: scores are negative, and the best is the largest, "
            "not the smallest.": (3, float(scores[3])),
            "The answer was chosen by log p and scored afterwards: choose by the score.": (
                0,
                float(scores[0]),
            ),
        },
    )


# %% hidden
def check_best_random(best_answer, random):  # 1 point
    for alpha in (0.0, 0.4, 1.3):
        log_p = -10 * torch.rand(8, generator=random) - 0.1
        symbols = torch.randint(0, 9, (8,), generator=random)
        expect(
            place_and_score(best_answer(log_p, symbols, alpha)),
            winner(log_p / (symbols + 1) ** alpha),
            otherwise="With other answers, other exponents or an empty answer the best "
            "one is missed.",
        )


# %% [markdown] question difficulty=4 minutes=25 reread=beam-search-keep-the-best-k
# ## One step of a beam
#
# **Goal.** There are W prefixes with log-probabilities `totals`, and `scores` says what
# each symbol adds to each of them. Of all W·V candidates return two lists, best first:
#
# - what goes on: the best k candidates that do **not** gain `EOS` (all, if there are
#   fewer);
# - what has ended: those among the **best k of all candidates** that do.
#
# A candidate is a tuple of its total, the prefix it continues and the symbol it gains.
# All totals are different.

# %% [markdown] hint
# Make one table of all totals, W V, and rank the whole of it. Place `i` of the flattened
# table: which row is it in, and which column?

# %% [markdown] hint
# `(totals[:, None] + scores).flatten().sort(descending=True)` gives totals and places; of
# their `.tolist()`, `divmod(place, V)` is the prefix and the symbol. The two lists differ
# in what is cut first: cut at k and look for `EOS`, or leave out `EOS` and cut at k.


# %% solution
def beam_step(
    totals: Float[Tensor, " W"], scores: Float[Tensor, "W V"], k: int
) -> tuple[list[Candidate], list[Candidate]]:
    """What goes on, and what has ended, best first."""
    # BEGIN SOLUTION
    ranked, places = (totals[:, None] + scores).flatten().sort(descending=True)
    candidates = [
        (total, *divmod(place, scores.shape[1]))
        for total, place in zip(ranked.tolist(), places.tolist(), strict=True)
    ]
    alive = [c for c in candidates if c[2] != EOS][:k]
    ended = [c for c in candidates[:k] if c[2] == EOS]
    return alive, ended
    # END SOLUTION


# %% checks
def check_step_by_hand(beam_step):  # 4 points
    totals = torch.tensor([-1.0, -1.5])
    scores = torch.tensor(
        [[0.02, 0.20, 0.30, 0.03, 0.45], [0.10, 0.15, 0.40, 0.28, 0.07]]
    ).log()
    table = totals[:, None] + scores
    candidates = all_candidates(table)
    alive, ended = advanced(candidates, 2)
    ranked = sorted(candidates, reverse=True)
    one_each = sorted(
        (max(c for c in candidates if c[1] == w and c[2] != EOS) for w in range(2)),
        reverse=True,
    )
    places = [(total, w * 5 + v) for total, w, v in candidates]
    lowest = sorted(candidates)
    expect(
        both_lists(beam_step(totals, scores, 2)),
        (alive, ended),
        otherwise="The step is wrong: rank totals + scores over all prefixes and "
        "symbols, put those with EOS among the best k aside, and keep the best k others.",
        mistakes={
            "The totals are not used: a candidate's log-probability is that of its prefix "
            "plus that of the symbol.": advanced(all_candidates(scores), 2),
            "Logarithms are multiplied: probabilities multiply, so logarithms add.": (
                advanced(all_candidates(totals[:, None] * scores), 2)
            ),
            "Prefix and symbol are exchanged: place // V is the prefix, place % V the "
            "symbol.": advanced([(t, v, w) for t, w, v in candidates], 2),
            "The places are divided by the number of prefixes: a row of the table has V "
            "places.": advanced([(t, *divmod(i, 2)) for t, i in places], 2),
            "An answer that has ended goes on: put candidates with EOS aside.": (
                ranked[:2],
                ended,
            ),
            "The beam gets thinner: an answer that ends must not take the place of a "
            "prefix that goes on.": (
                [c for c in ranked[:2] if c[2] != EOS],
                ended,
            ),
            "Everything that could end is put aside: only EOS among the best k "
            "candidates counts.": (alive, [c for c in ranked if c[2] == EOS]),
            "Each prefix goes on once: one prefix may have several of the best k "
            "candidates, another none.": (one_each, ended),
            "These are the least likely candidates: the largest total is the best.": (
                [c for c in lowest if c[2] != EOS][:2],
                [c for c in lowest[:2] if c[2] == EOS],
            ),
        },
    )


# %% hidden
def check_step_with_one_prefix(beam_step):  # 1 point
    totals, scores = torch.zeros(1), torch.tensor([[0.1, 0.2, 0.4, 0.3]]).log()
    try:
        answer = beam_step(totals, scores, 3)
    except (IndexError, RuntimeError):
        answer = None
    assert answer is not None, (
        "The first step failed: there is one prefix then, not k, and topk cannot take "
        "more candidates than there are."
    )
    expect(
        both_lists(answer),
        advanced(all_candidates(totals[:, None] + scores), 3),
        otherwise="At the first step, with one prefix, the candidates are wrong.",
    )


def check_step_random(beam_step, random):  # 1 point
    totals = -3 * torch.rand(4, generator=random)
    scores = torch.randn(4, 7, generator=random).log_softmax(dim=-1)
    scores[:, EOS] += 1.5
    expect(
        both_lists(beam_step(totals, scores, 4)),
        advanced(all_candidates(totals[:, None] + scores), 4),
        otherwise="On a random beam some candidates are wrong.",
    )


# %% [markdown] question difficulty=3 minutes=15 reread=break-it-forget-to-reorder
# ## What a prefix takes over
#
# **Goal.** A step has chosen: new prefix w continues the old prefix `parents[w]` and
# gains `symbols[w]`. Return the new prefixes, each one symbol longer, and the states that
# belong to them. The state of a decoder with several layers has the shape (layers, W, D).
# The number of prefixes may change: N go on from W.

# %% [markdown] hint
# A prefix and its state must come from the same parent. Which axis of each belongs to the
# prefixes?

# %% [markdown] hint
# An index of numbers chooses rows, as often as they are named: `prefixes[parents]`,
# `state[:, parents]`. `torch.cat` appends `symbols[:, None]` along the last axis.


# %% solution
def continue_prefixes(
    prefixes: Int[Tensor, "W T"],
    state: Float[Tensor, "layers W D"],
    parents: Int[Tensor, " N"],
    symbols: Int[Tensor, " N"],
) -> tuple[Int[Tensor, "N T+1"], Float[Tensor, "layers N D"]]:
    """Prefixes and states after a step."""
    # BEGIN SOLUTION
    longer = torch.cat([prefixes[parents], symbols[:, None]], dim=1)
    return longer, state[:, parents]
    # END SOLUTION


# %% checks
def check_rows_change_places(continue_prefixes):  # 3 points
    prefixes = torch.tensor([[1, 10], [1, 11], [1, 12]])
    state = torch.arange(18.0).view(3, 3, 2)
    parents, symbols = torch.tensor([2, 0, 1]), torch.tensor([7, 8, 9])
    last = symbols[:, None]
    longer = torch.cat([prefixes[parents], last], dim=1)
    stale = torch.cat([prefixes, last], dim=1)
    back = parents.argsort()
    expect(
        continue_prefixes(prefixes, state, parents, symbols),
        (longer, state[:, parents]),
        otherwise="Prefixes or states are wrong: take both from the parent, then append "
        "the new symbol.",
        mistakes={
            "The state is not reordered: each prefix goes on with the past of another "
            "one.": (longer, state),
            "The prefixes are not reordered: each new symbol belongs behind its "
            "parent.": (stale, state[:, parents]),
            "`parents` is not used: prefixes and states stay where they were.": (
                stale,
                state,
            ),
            "The layers were reordered: prefixes stand on the second axis of the state.": (
                longer,
                state[parents],
            ),
            "Rows went the wrong way: new row w comes from old row parents[w]; here old "
            "row w went to row parents[w].": (
                torch.cat([prefixes[back], last], dim=1),
                state[:, back],
            ),
            "The symbols were reordered too: symbols[w] belongs to new prefix w already.": (
                torch.cat([prefixes[parents], symbols[parents, None]], dim=1),
                state[:, parents],
            ),
            "The new symbol stands in front: it is the last one of its prefix.": (
                torch.cat([last, prefixes[parents]], dim=1),
                state[:, parents],
            ),
            "A state was overwritten while others still needed it: read all rows before "
            "you write one.": (longer, state[:, [2, 2, 2]]),
        },
    )


def check_one_parent_of_two(continue_prefixes):  # 1 point
    prefixes = torch.tensor([[1, 10, 4], [1, 11, 5], [1, 12, 6]])
    state = torch.arange(12.0).view(2, 3, 2)
    parents, symbols = torch.tensor([1, 1, 0]), torch.tensor([7, 8, 7])
    expect(
        continue_prefixes(prefixes, state, parents, symbols),
        (
            torch.tensor([[1, 11, 5, 7], [1, 11, 5, 8], [1, 10, 4, 7]]),
            state[:, [1, 1, 0]],
        ),
        otherwise="Two prefixes with the same parent should both get its past.",
    )


# %% hidden
def check_the_beam_opens(continue_prefixes, random):  # 1 point
    state = torch.randn(2, 1, 3, generator=random)
    parents, symbols = torch.zeros(4, dtype=torch.long), torch.tensor([5, 3, 6, 4])
    try:
        answer = continue_prefixes(torch.tensor([[1]]), state, parents, symbols)
    except (IndexError, RuntimeError):
        answer = None
    assert answer is not None, (
        "The first step failed: one prefix becomes several there, so make as many rows "
        "as there are parents, not as many as there were."
    )
    expect(
        answer,
        (
            torch.tensor([[1, 5], [1, 3], [1, 6], [1, 4]]),
            state.expand(2, 4, 3),
        ),
        otherwise="Where one prefix becomes several, each should get its past.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=what-it-costs
# ## What a beam costs
#
# **Goal.** Count the candidates that a beam of width k looks at in T steps, if it does
# not stop early. There are n symbols, and one of them is `EOS`. The first step continues
# one prefix, the empty one. Whatever ends does not go on; of the rest the best k do, or
# all if there are fewer.
#
# A beam that is wide enough tries everything: your count should then be that of
# exhaustive search.

# %% [markdown] hint
# Each prefix that is alive has n continuations. So how many prefixes are alive at step 1,
# 2, 3, …? Without a limit, each makes n − 1 new ones.

# %% [markdown] hint
# Before step t + 1 there are (n − 1)^t prefixes or k, whichever is less. Add up n times
# that for t from 0 to T − 1.


# %% solution
def candidates_looked_at(k: int, n: int, T: int) -> int:
    """How many scored continuations a beam of width k chooses among in T steps."""
    # BEGIN SOLUTION
    return sum(n * min(k, (n - 1) ** t) for t in range(T))
    # END SOLUTION


# %% checks
def check_counts_by_hand(candidates_looked_at):  # 2 points
    expect(
        candidates_looked_at(10, 5, 4),
        5.0 * (1 + 4 + 10 + 10),
        otherwise="With k = 10, n = 5, T = 4 there are 1, 4, 10 and 10 prefixes, each "
        "with 5 continuations.",
        mistakes={
            "This is the bound k · n · T: the beam begins with one prefix, not k.": 200.0,
            "The second step has too many prefixes: one prefix makes n − 1 that go on, "
            "which may be fewer than k.": 155.0,
            "Answers that have ended go on here: of n continuations n − 1 do.": 130.0,
            "There is a step too many: T steps in all, the first included.": 175.0,
            "There is a step too few: T steps in all, the first included.": 75.0,
            "These are the prefixes that are continued: each has n candidates.": 25.0,
            "This is exhaustive search: a beam never continues more than k prefixes.": (
                425.0
            ),
            "These are the answers of length T: count the candidates of every step.": (
                625.0
            ),
        },
    )


def check_counts_of_greedy(candidates_looked_at):  # 1 point
    expect(
        candidates_looked_at(1, 6, 7),
        42.0,
        otherwise="Greedy search, k = 1, looks at n candidates in each of T steps.",
    )


# %% hidden
def check_counts_of_one_sound(candidates_looked_at):  # 1 point
    try:
        answer = candidates_looked_at(3, 2, 5)
    except ArithmeticError:
        answer = None
    assert answer is not None, (
        "With one symbol beside EOS the formula of the geometric series divides by zero: "
        "add up the steps one by one."
    )
    expect(
        answer,
        10.0,
        otherwise="With one symbol beside EOS there is never more than one prefix.",
    )


def check_counts_by_trying(candidates_looked_at, random):  # 1 point
    for _ in range(6):
        k, n, T = torch.randint(2, 7, (3,), generator=random).tolist()
        alive, looked_at = [()], 0
        for _ in range(T):
            candidates = [(*prefix, v) for prefix in alive for v in range(n)]
            looked_at += len(candidates)
            alive = [c for c in candidates if c[-1] != 0][:k]
        expect(
            candidates_looked_at(k, n, T),
            float(looked_at),
            otherwise="For other k, n and T the count differs from that of a beam.",
        )


# %% [markdown] question difficulty=3 minutes=20 reread=sampling
# ## Keep the probable: top-p
#
# **Goal.** For sampling, keep in each row the **fewest** symbols whose probabilities
# together reach `top_p`, the likeliest first. All others get a log-probability of −∞, and
# those that are kept are scaled so that their probabilities add up to 1. Symbols stay in
# their places.

# %% [markdown] hint
# Rank the symbols of a row and add up their probabilities. The symbol that reaches
# `top_p` is the last one to be kept: how much stands **before** it?

# %% [markdown] hint
# With `p, order = log_p.exp().sort(dim=-1, descending=True)`, keep where
# `p.cumsum(dim=-1) - p < top_p`. `torch.zeros_like(keep).scatter(1, order, keep)` brings
# that back to the places of the symbols, and `log_softmax` scales.


# %% solution
def keep_top_p(log_p: Float[Tensor, "W V"], top_p: float) -> Float[Tensor, "W V"]:
    """Log-probabilities of the fewest symbols that together reach top_p."""
    # BEGIN SOLUTION
    p, order = log_p.exp().sort(dim=-1, descending=True)
    keep = p.cumsum(dim=-1) - p < top_p
    keep = torch.zeros_like(keep).scatter(1, order, keep)
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)
    # END SOLUTION


# %% checks
def check_kept_by_hand(keep_top_p):  # 3 points
    p = torch.tensor([[0.10, 0.30, 0.15, 0.25, 0.20], [0.05, 0.40, 0.35, 0.14, 0.06]])
    log_p = p.log()
    keep = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 1, 0, 0]], dtype=torch.bool)
    short = torch.tensor([[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]], dtype=torch.bool)
    three = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 1, 1, 0]], dtype=torch.bool)
    unlikely = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=torch.bool)
    right = kept(log_p, keep)
    expect(
        keep_top_p(log_p, 0.65),
        right,
        otherwise="The log-probabilities are wrong: keep the fewest symbols that reach p "
        "in each row, −∞ for the rest, and scale what is kept.",
        mistakes={
            "What is kept does not reach p: the symbol that crosses it belongs to those "
            "kept.": kept(log_p, short),
            "The probabilities do not add up to 1 again: scale what is kept, for "
            "instance with log_softmax.": log_p.masked_fill(~keep, -torch.inf),
            "Dropped symbols can still be drawn: a log-probability of 0 is a "
            "probability of 1, use −∞.": log_p.masked_fill(~keep, 0).log_softmax(-1),
            "The symbols have changed places: undo the sorting.": right.sort(
                dim=-1, descending=True
            )[0],
            "Nothing was dropped: add up probabilities, not their logarithms.": log_p,
            "The least likely symbols were kept: sort in descending order.": kept(
                log_p, unlikely
            ),
            "These are probabilities: return their logarithms.": right.exp(),
            "Each symbol alone was compared with p: it is their sum that should reach "
            "it.": torch.full_like(p, torch.nan),
            "Both rows keep as many symbols: how many are needed differs from row to "
            "row.": kept(log_p, three),
        },
    )


def check_a_sure_step(keep_top_p):  # 1 point
    log_p = torch.tensor([[0.05, 0.90, 0.01, 0.03, 0.01]]).log()
    right = torch.full((1, 5), -torch.inf)
    right[0, 1] = 0.0
    expect(
        keep_top_p(log_p, 0.6),
        right,
        otherwise="Where one symbol reaches p alone, keep that one and no other.",
    )


# %% hidden
def check_symbols_as_likely(keep_top_p):  # 1 point
    answer = keep_top_p(torch.full((1, 4), 0.25).log(), 0.4)
    expect(
        answer.exp().sort(dim=-1, descending=True)[0],
        torch.tensor([[0.5, 0.5, 0.0, 0.0]]),
        otherwise="Where symbols are equally likely, the number kept is wrong.",
        mistakes={
            "Where symbols are equally likely, too many are kept: count them, a "
            "threshold for the probability cannot tell them apart.": torch.full(
                (1, 4), 0.25
            ),
        },
    )


def check_top_p_random(keep_top_p, random):  # 1 point
    log_p = (2 * torch.randn(5, 9, generator=random)).log_softmax(dim=-1)
    expect(
        keep_top_p(log_p, 0.8),
        kept(log_p, fewest(log_p.exp(), 0.8)),
        otherwise="On random rows some log-probabilities are wrong.",
    )
