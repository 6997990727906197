# %% [markdown]
# # Exercise 7: Self-attention and many heads
#
# You cut features into heads and put them together again, compute self-attention with
# many heads, hide the future, and write the test that finds out whether it is hidden.
# Most wrong answers have the right shape, so the checks compare numbers. Axes are those
# of the chapter: B batch, T positions, D width, H heads, K width of one head.

# %% given
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor


# %% helpers
import math

import torch
from torch import nn
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect, expect_tensor


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def refuses(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    except RuntimeError:
        return False
    return False


def slices(x, heads):
    return torch.stack(x.chunk(heads, dim=-1), dim=1)


def brought(x, W_Q, W_K, W_V, **options):
    return [
        F.scaled_dot_product_attention(*(x @ W.T for W in own), **options)
        for own in zip(W_Q, W_K, W_V, strict=True)
    ]


def mixed(heads, W_O):
    return sum(o @ W.T for o, W in zip(heads, W_O, strict=True))


def copies_of(perturbed, x):
    copies = perturbed(x)
    expect_tensor(copies, torch.zeros(len(x), *x.shape))
    assert copies.dtype == x.dtype, (
        "The copies have another precision than x, so that rounding changes every "
        "position: clone x, or pass dtype=x.dtype."
    )
    return copies


def looking_back(scores):
    weights = torch.zeros_like(scores)
    for t in range(scores.shape[-1]):
        weights[..., t, : t + 1] = scores[..., t, : t + 1].softmax(dim=-1)
    return weights


# %% [markdown] question difficulty=2 minutes=15 reread=all-heads-in-one-product
# ## Split and merge the heads
#
# **Goal.** `split_heads` cuts the features of every position into H slices of K = D / H
# neighbours: the first K features go to the first head, the next K to the second.
# If H does not divide D, it raises a `ValueError`. `merge_heads` puts the slices side by
# side again, so that merging what was split gives `x` back.

# %% [markdown] hint
# Only the last axis may be cut. Which axes has the tensor right after the cut, in which
# order, and which two of them must change places?

# %% [markdown] hint
# `x.unflatten(2, (heads, width))` is B T H K. Then `transpose(1, 2)`. To merge, do the
# same backwards: `transpose(1, 2)`, then `flatten(2)`.


# %% solution
def split_heads(x: Float[Tensor, "B T D"], heads: int) -> Float[Tensor, "B H T K"]:
    """Cut the features into slices, one for each head."""
    # BEGIN SOLUTION
    width = x.shape[-1]
    if width % heads:
        raise ValueError(f"width {width} does not split into {heads} heads")
    return x.unflatten(2, (heads, width // heads)).transpose(1, 2)
    # END SOLUTION


def merge_heads(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """Put the heads' slices side by side again."""
    # BEGIN SOLUTION
    return x.transpose(1, 2).flatten(2)
    # END SOLUTION


# %% checks
def check_split_by_hand(split_heads):  # 2 points
    x = torch.arange(72.0).view(3, 4, 6)
    expect(
        split_heads(x, 2),
        slices(x, 2),
        otherwise="The slices are wrong: head h gets the features from h·K up to "
        "(h + 1)·K of every position.",
        mistakes={
            "One position was cut into several: view counts on through positions and "
            "features. Cut the last axis alone, then swap axes.": x.view(3, 2, 4, 3),
            "A head got every H-th feature: its slice should be K neighbours, so the "
            "heads come first when the last axis is cut.": (
                x.view(3, 4, 3, 2).permute(0, 3, 1, 2)
            ),
            "The heads stand behind the positions: B H T K, not B T H K.": (
                x.view(3, 4, 2, 3)
            ),
        },
    )


def check_merge_by_hand(merge_heads):  # 2 points
    x = torch.arange(72.0).view(3, 2, 4, 3)
    try:
        merged = merge_heads(x)
    except RuntimeError as error:
        is_view = "view" in str(error) and "stride" in str(error)
        raise AssertionError(
            "view cannot join axes that transpose has moved apart in memory: reshape "
            "and flatten copy where they must."
            if is_view
            else f"merge_heads stops at B H T K. PyTorch says: {error}"
        ) from error
    expect(
        merged,
        torch.cat(x.unbind(dim=1), dim=-1),
        otherwise="The merged features are wrong: all of the first head, then all of "
        "the second.",
        mistakes={
            "Positions were merged with heads: bring the heads next to their features "
            "before you flatten.": x.reshape(3, 4, 6),
            "The features of the heads alternate: put whole slices side by side.": (
                x.permute(0, 2, 3, 1).flatten(2)
            ),
            "The heads are added up: put them side by side, or which was which is "
            "lost.": x.sum(dim=1),
            "The heads are averaged: put them side by side.": x.mean(dim=1),
        },
    )


# %% hidden
def check_split_of_odd_widths(split_heads):  # 1 point
    assert not refuses(split_heads, torch.zeros(2, 4, 12), 4), (
        "A ValueError came although the heads divide the width."
    )
    assert refuses(split_heads, torch.zeros(2, 4, 10), 4), (
        "A width that the heads do not divide needs a ValueError: otherwise features "
        "are lost, or PyTorch complains of shapes that nobody asked for."
    )


def check_split_and_merge_random(split_heads, merge_heads, random):  # 1 point
    for heads in (1, 3, 12):
        x = torch.randn(2, 5, 12, generator=random)
        expect(
            split_heads(x, heads),
            slices(x, heads),
            otherwise="With other numbers of heads some slices are wrong.",
        )
        expect(
            merge_heads(slices(x, heads)),
            x,
            otherwise="With other numbers of heads some merged features are wrong.",
        )


# %% [markdown] question difficulty=3 minutes=15 reread=query-key-and-value-of-every-letter
# ## Self-attention with many heads
#
# **Goal.** Let every position look at all positions, once for each head, and mix what
# the heads bring. Each head has matrices of its own, as in the chapter:
#
# $$\begin{gathered}
# q_i = W_Q\, x_i \qquad k_j = W_K\, x_j \qquad v_j = W_V\, x_j \\
# o_i = \sum_j \operatorname{softmax}_j\!\left(\frac{q_i \cdot k_j}{\sqrt K}\right) v_j
# \end{gathered}$$
#
# and the output is $\sum_h W_O^h\, o_i^h$. The first axis of the matrices counts the
# heads: `W_Q[h]` is K D, `W_O[h]` is D K. There is no mask and no bias.

# %% [markdown] hint
# $W x_i$ for all positions at once is `x @ W.T`. Write it for one head first. Heads do
# not see each other, so a loop over them is enough.

# %% [markdown] hint
# In the loop: `weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)`, then add
# `weights @ v @ W_O[h].T` to the output, which starts as `torch.zeros_like(x)`.


# %% solution
def self_attention(
    x: Float[Tensor, "B T D"],
    W_Q: Float[Tensor, "H K D"],
    W_K: Float[Tensor, "H K D"],
    W_V: Float[Tensor, "H K D"],
    W_O: Float[Tensor, "H D K"],
) -> Float[Tensor, "B T D"]:
    """Let every head look at all positions, and add up what the heads bring."""
    # BEGIN SOLUTION
    output = torch.zeros_like(x)
    for h in range(len(W_Q)):
        q, k, v = x @ W_Q[h].T, x @ W_K[h].T, x @ W_V[h].T  # B T K
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)  # B T T
        output = output + weights @ v @ W_O[h].T
    return output
    # END SOLUTION


# %% checks
def check_cat_by_hand(self_attention):  # 2 points
    x = torch.eye(3)[None]  # c, a, t
    W_Q = torch.tensor([[[0.0, math.log(2), math.log(3)]]])
    W_K = torch.tensor([[[0.0, 0.0, 1.0]]])
    W_V = torch.tensor([[[20.0, 0.0, 40.0]]])
    W_O = torch.tensor([[[1.0], [0.5], [0.0]]])
    scores = (x @ W_Q[0].T) @ (x @ W_K[0].T).mT
    expect(
        self_attention(x, W_Q, W_K, W_V, W_O),
        torch.tensor([[[20.0, 10.0, 0.0], [25.0, 12.5, 0.0], [28.0, 14.0, 0.0]]]),
        otherwise="The outputs for the letters of cat are wrong: with one head they are "
        "20, 25 and 28 times the only column of W_O.",
        mistakes={
            "Queries and keys are swapped: rows of the scores ask, columns answer.": (
                mixed(brought(x, W_K, W_Q, W_V), W_O)
            ),
            "Scores are divided by the root of D: a score adds up K products, the width "
            "of one head.": mixed(
                brought(x, W_Q, W_K, W_V, scale=1 / math.sqrt(3)), W_O
            ),
            "The weights add up over those who ask: the softmax belongs over j, the last "
            "axis.": scores.softmax(dim=-2) @ (x @ W_V[0].T) @ W_O[0].T,
            "W_O is missing: what the heads bring is returned as it is.": torch.cat(
                brought(x, W_Q, W_K, W_V), dim=-1
            ),
        },
    )


def check_two_heads(self_attention):  # 2 points
    x = numbers(2, 3, 8)
    W_Q, W_K, W_V = numbers(3, 2, 4, 8, seed=1) / 2
    W_O = numbers(2, 8, 4, seed=2)
    heads = brought(x, W_Q, W_K, W_V)
    (all_at_once,) = brought(x, *(W.flatten(0, 1)[None] for W in (W_Q, W_K, W_V)))
    expect(
        self_attention(x, W_Q, W_K, W_V, W_O),
        mixed(heads, W_O),
        otherwise="With two heads the outputs are wrong: add up W_O[h] times what head h "
        "brings.",
        mistakes={
            "Scores are not scaled: divide by the root of K.": mixed(
                brought(x, W_Q, W_K, W_V, scale=1.0), W_O
            ),
            "All heads share one softmax: each has weights of its own, or it is one "
            "wide head.": mixed(all_at_once.chunk(2, dim=-1), W_O),
            "Only the last head is heard: add to the output, do not replace it.": (
                heads[-1] @ W_O[-1].T
            ),
            "The contributions of the heads are averaged: add them up.": (
                mixed(heads, W_O) / 2
            ),
            "The slices of W_O are mixed up: a reshape of H D K to D rows tears them "
            "apart. Head h goes through W_O[h].": (
                torch.cat(heads, dim=-1) @ W_O.reshape(8, 8).T
            ),
        },
    )


# %% hidden
def check_against_pytorch(self_attention, random):  # 2 points
    x = torch.randn(3, 5, 6, generator=random)
    W_Q, W_K, W_V = torch.randn(3, 3, 2, 6, generator=random)
    W_O = torch.randn(3, 6, 2, generator=random)
    theirs = nn.MultiheadAttention(6, 3, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([*W_Q, *W_K, *W_V]))
        theirs.out_proj.weight.copy_(torch.cat([*W_O], dim=1))
        right, _ = theirs(x, x, x)
    expect(
        self_attention(x, W_Q, W_K, W_V, W_O),
        right,
        otherwise="With other sizes the outputs differ from nn.MultiheadAttention.",
    )


# %% [markdown] question difficulty=2 minutes=10 reread=the-causal-mask-the-future-cannot-change-the-past
# ## Weights that look back
#
# **Goal.** Turn the scores of all heads into causal weights: position $i$ shares a weight
# of 1 among the positions $j \le i$, and what comes later gets exactly 0. No score of the
# future, however large, may change a weight.

# %% [markdown] hint
# The softmax divides by a sum over all keys. What must the scores of the future be so
# that they add nothing to this sum?

# %% [markdown] hint
# `torch.ones(T, T, dtype=torch.bool).tril()` is `True` where one may look. Fill the
# scores with `-torch.inf` elsewhere, then take the softmax over the last axis.


# %% solution
def causal_weights(scores: Float[Tensor, "B H T T"]) -> Float[Tensor, "B H T T"]:
    """Share the weight of each position among itself and those before it."""
    # BEGIN SOLUTION
    T = scores.shape[-1]
    mask = torch.ones(T, T, dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    # END SOLUTION


# %% checks
def check_causal_by_hand(causal_weights):  # 2 points
    scores = torch.tensor(
        [[1.0, 0.5, 2.0, -1.0], [0, 2, 1, 3], [2, -1, 0.5, 1], [1, 3, -2, 0]]
    )[None, None]
    back, plain = torch.ones(4, 4).tril().bool(), scores.softmax(dim=-1)
    hidden = scores.masked_fill(~back, -torch.inf)
    expect(
        causal_weights(scores),
        looking_back(scores),
        otherwise="The weights are wrong: row i is the softmax of its first i + 1 "
        "scores, then zeros.",
        mistakes={
            "Nothing is hidden: every position still looks at all.": plain,
            "The mask is off by one: each position sees the next.": scores.masked_fill(
                ~torch.ones(4, 4).tril(1).bool(), -torch.inf
            ).softmax(dim=-1),
            "A position may look at itself: without that the first has nothing to look "
            "at, and its weights are no numbers.": scores.masked_fill(
                ~torch.ones(4, 4).tril(-1).bool(), -torch.inf
            ).softmax(dim=-1),
            "The past is hidden and the future is seen: use the lower triangle, rows "
            "look at columns.": scores.masked_fill(~back.T, -torch.inf).softmax(dim=-1),
            "The mask comes after the softmax: the future is in the sum that every "
            "weight was divided by, and leaks.": plain * back,
            "The future still gets a weight: a score of 0 is a score like any other, "
            "minus infinity is not.": (scores * back).softmax(dim=-1),
            "The weights add up over those who look: the softmax belongs over the last "
            "axis.": hidden.softmax(dim=-2),
        },
    )


def check_loud_future(causal_weights):  # 1 point
    scores = torch.tensor([[0.0, 900.0, 0.0], [1.0, 0.0, 900.0], [0.0, 1.0, 2.0]])
    scores = scores[None, None]
    weights = causal_weights(scores)
    assert bool(torch.isfinite(weights).all()), (
        "A loud future leaves 0/0: the softmax over everything gives the past nothing, "
        "and dividing by its sum cannot repair that. Hide the scores first."
    )
    expect(
        weights,
        looking_back(scores),
        otherwise="Large scores of the future change the weights of the past.",
    )


# %% hidden
def check_quiet_past(causal_weights):  # 1 point
    scores = torch.zeros(1, 1, 3, 3) - 30_000
    expect(
        causal_weights(scores),
        looking_back(scores),
        otherwise="Where all scores are very low, the weights are wrong.",
        mistakes={
            "Where all scores are very low, the future wins: hidden scores must be lower "
            "than any other, and only minus infinity always is.": (
                scores.tril().softmax(dim=-1)
            ),
        },
    )


def check_causal_random(causal_weights, random):  # 1 point
    scores = torch.randn(2, 3, 5, 5, generator=random) * 3
    expect(
        causal_weights(scores),
        looking_back(scores),
        otherwise="On random scores of several heads some weights are wrong.",
    )


# %% [markdown] question difficulty=4 minutes=20 reread=change-one-input-see-which-outputs-move
# ## Perturb and see
#
# **Goal.** Find out which positions an output depends on, without looking inside the
# layer. First plan the experiments: copy $j$ of `x` has position $j$ changed in all its
# features, and no other. Your change must be a change whatever `x` holds. A small one is
# lost in rounding, and so is the rest of `x` beside a huge one: move every feature by at
# least 0.1 and at most 10, and keep the precision of `x`. Then read the results. A check
# runs a layer on `x` and on every copy, and gives you its outputs before and after. Row
# $i$, column $j$ of the answer is `True` if output $i$ moved when input $j$ was changed.
# To move means that the difference is longer than $10^{-9}$; what is less is rounding.
#
# With a layer of your own you can try both, in double precision, as the checks do; single
# precision already rounds at $10^{-7}$:
#
# ```python
# after = torch.stack([layer(copy) for copy in perturbed(x)])
# felt(layer(x), after)
# ```

# %% [markdown] hint
# Each copy is an experiment of its own, and starts from the same `x`. What happens to
# `x` if you write `changed = x` and then change `changed`? In the results, the first
# axis counts the copies. Which axis of the answer does?

# %% [markdown] hint
# For each `j`: `changed = x.clone()`, then `changed[j] += 1`; stack them. The moves are
# `(after - before).norm(dim=2)`, and their rows are the copies, so swap the axes.


# %% solution
def perturbed(x: Float[Tensor, "T D"]) -> Float[Tensor, "T T D"]:
    """For every position a copy of x in which it, and no other, is changed."""
    # BEGIN SOLUTION
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += 1
        copies.append(changed)
    return torch.stack(copies)
    # END SOLUTION


def felt(
    before: Float[Tensor, "T D"], after: Float[Tensor, "T T D"]
) -> Bool[Tensor, "T T"]:
    """Whether each output (row) moved when one input (column) was changed.

    `after[j]` is what the layer said to copy j, `before` what it said to x.
    """
    # BEGIN SOLUTION
    moves = (after - before).norm(dim=2)  # copies, outputs
    return moves.T > 1e-9
    # END SOLUTION


# %% checks
def check_perturbed_by_hand(perturbed):  # 2 points
    x = torch.tensor([[1, 2], [0, 0], [3, -1], [-2, 5]], dtype=torch.double)
    copies = copies_of(perturbed, x)
    moved = (copies - x).abs() > 0
    alone, is_zero = torch.eye(4, dtype=torch.bool), (x == 0).all(dim=1)
    assert not bool(moved.all()), (
        "Every copy differs from x everywhere: was x itself changed? Clone it first."
    )
    expect(
        moved.any(dim=2),
        alone,
        otherwise="Copy j should differ from x at position j, and nowhere else.",
        mistakes={
            "The changes pile up: begin every experiment with a clone of x.": (
                torch.ones(4, 4, dtype=torch.bool).tril()
            ),
            "A position of zeros was not changed: to multiply it or to set it to zero "
            "does nothing there. Add something.": alone & ~is_zero,
            "Everything else was changed: keep the other positions as they are.": (
                ~alone
            ),
        },
    )


def check_felt_by_hand(felt):  # 2 points
    before = torch.tensor([[1.0, 2], [0, 0], [3, -1]], dtype=torch.double)
    moves = torch.zeros(3, 3, 2, dtype=torch.double)  # copies, outputs, features
    moves[0, 0] = torch.tensor([2.0, 1])
    moves[0, 1] = torch.tensor([-1.0, -3])
    moves[1, 1] = torch.tensor([0.0, 3.0])
    moves[1, 2] = torch.tensor([0.0, 1e-7])
    moves[2, 0] = torch.tensor([0.5, -0.5])
    moves[2, 2] = torch.tensor([-2.0, 1])
    right = moves.abs().sum(dim=2).T > 0
    expect(
        felt(before, before + moves),
        right,
        otherwise="The wrong outputs moved: compare each of after with before, and look "
        "at all features of an output.",
        mistakes={
            "Rows and columns are swapped: rows are outputs, columns are what changed.": (
                right.T
            ),
            "Only moves upwards are seen: take the norm of the difference, or its "
            "absolute value.": moves.amax(dim=2).T > 0,
            "Only outputs are seen that move upwards on the whole: take the norm of "
            "the difference.": moves.sum(dim=2).T > 0,
            "Features that move in opposite directions cancel: take absolute values "
            "before you add them up.": moves.sum(dim=2).T != 0,
            "A small move is not seen: only what is shorter than 1e-9 is rounding.": (
                (moves.abs().amax(dim=2) > 1e-5).T
            ),
            "An output counts only if all its features move: one is enough.": (
                (moves != 0).all(dim=2).T
            ),
            "Movement and rest are mixed up: True is for what moved.": ~right,
        },
    )


# %% hidden
def check_every_feature_is_perturbed(perturbed, random):  # 1 point
    x = torch.randn(3, 4, generator=random, dtype=torch.double)
    x[1, 2] = 0
    kept = "A feature of a changed position kept its value: change every one of them."
    for _ in range(2):  # the second time, what was changed is changed again
        changed = copies_of(perturbed, x)[range(3), range(3)]  # T D
        changes = (changed - x).abs()
        moved = changes > 0
        assert not bool((moved[:, 0] & ~moved[:, 1:].any(dim=1)).any()), (
            "Only the first feature was changed, and a layer need not read it: change "
            "all features of the position."
        )
        assert bool(moved.all()), kept
        assert bool((changes >= 0.099).all()), (
            "A change is smaller than 0.1, so that what it moves may be taken for "
            "rounding: add a number that is large enough."
        )
        assert bool((changes <= 10.01).all()), (
            "A change is larger than 10: beside huge numbers a layer rounds the others, "
            "and that looks like movement."
        )
        x = changed
        kept = "Perturbed once more, a position stayed as it was: add to what x holds."


def check_layers_are_felt(perturbed, felt, random):  # 2 points
    x = torch.randn(7, 3, generator=random, dtype=torch.double)
    mix = torch.randn(7, 7, generator=random, dtype=torch.double)
    mix *= torch.rand(7, 7, generator=random) < 0.4
    features = torch.randn(3, 3, generator=random, dtype=torch.double)

    def layer(x):
        more = x.square().sum(dim=0)  # added and taken away: like any layer, it rounds
        return mix @ x @ features + more - more

    right, before = mix != 0, layer(x)
    ones = torch.eye(7, dtype=torch.double)[..., None]
    after = torch.stack([layer(one) for one in x + ones])
    expect(
        felt(before, after),
        right,
        otherwise="Of a random layer, felt says that the wrong outputs moved.",
        mistakes={
            "Rounding is taken for movement: compare with 1e-9, not with 0.": (
                (after != before).any(dim=2).T
            ),
        },
    )
    after = torch.stack([layer(one) for one in copies_of(perturbed, x)])
    expect(
        (after - before).norm(dim=2).T > 1e-9,
        right,
        otherwise="In a random layer your copies do not show what moves what.",
    )
