# %% [markdown]
# # Exercise 6: Attention
#
# You write attention itself: the masked softmax, the average, and two ways to score a
# key. Each answer is one to three lines of PyTorch. Axes are those of the chapter: B
# batch, T queries, S keys, K width of a query and of a key. Masks are `True` where a
# query may look.

# %% given
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

# %% helpers
import math

import torch

from seq2seq_lib.grading.expect import expect


def softmax_of(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def raises_value_error(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False


# %% [markdown] question difficulty=2 minutes=10 reread=masks-positions-that-get-no-weight
# ## Masked softmax
#
# **Goal.** Turn scores into weights. Each query shares a weight of 1 among the keys it
# may look at; all others get exactly 0. Scores may be large, such as 1000, or all be very
# low, such as −30,000. If a query may look at no key at all, there is nothing to share:
# raise a `ValueError`.
#
# The mask may have one row for all queries: its second axis is T or 1.

# %% [markdown] hint
# A weight of 0 needs a score of minus infinity **before** the softmax. Along which axis
# do the weights of one query stand?

# %% [markdown] hint
# `scores.masked_fill(condition, value)` fills where the condition is `True`, and it
# broadcasts. For the error, ask `mask.any(dim=-1)`.


# %% solution
def masked_softmax(
    scores: Float[Tensor, "B T S"], mask: Bool[Tensor, "B #T S"]
) -> Float[Tensor, "B T S"]:
    """Share the weight of each query among the keys it may look at."""
    # BEGIN SOLUTION
    if not mask.any(dim=-1).all():
        raise ValueError("the mask hides every key from some query")
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    # END SOLUTION


# %% checks
def check_weights_by_hand(masked_softmax):  # 2 points
    scores = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 0.0, 0.5]]])
    mask = torch.tensor([[[True, True, False], [True, False, True]]])
    plain = scores.softmax(dim=-1)
    expect(
        masked_softmax(scores, mask),
        softmax_of(scores, mask),
        otherwise="The weights are wrong: fill hidden scores with minus infinity, "
        "then take the softmax over the keys.",
        mistakes={
            "The mask looks inverted: True means that a query may look.": softmax_of(
                scores, ~mask
            ),
            "The mask changes nothing: hidden keys still get a weight.": plain,
            "The weights of a query do not add up to 1: hide the scores before the "
            "softmax, not the weights after it.": plain * mask,
            "Hidden keys still get a weight: a score of 0 is a score like any other, "
            "minus infinity is not.": (scores * mask).softmax(dim=-1),
            "The weights add up over the queries: the softmax belongs over the keys, "
            "the last axis.": scores.masked_fill(~mask, -math.inf)
            .softmax(dim=-2)
            .nan_to_num(),
        },
    )


def check_large_scores(masked_softmax):  # 1 point
    scores = torch.tensor([[[1000.0, 999.0, -1000.0]]])
    mask = torch.tensor([[[True, True, False]]])
    weights = masked_softmax(scores, mask)
    assert bool(torch.isfinite(weights).all()), (
        "Large scores overflow: exp(1000) is infinite. Subtract the maximum first, or "
        "use torch's softmax, which does."
    )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="Weights of large scores are wrong: only differences of scores count.",
    )
    scores = torch.tensor([[[-30_000.0, 0.0, -30_001.0]]])
    mask = torch.tensor([[[True, False, True]]])
    weights = masked_softmax(scores, mask)
    if isinstance(weights, torch.Tensor) and weights.shape == (1, 1, 3):
        assert not float(weights[0, 0, 1]) > 0, (
            "Where all scores are very low, a hidden key wins: its score must be lower "
            "than any other, and only minus infinity always is."
        )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="Weights of very low scores are wrong.",
    )


def check_one_mask_for_all_queries(masked_softmax):  # 1 point
    scores = torch.tensor([[[1.0, 2.0, 3.0], [3.0, 0.0, 0.5]]])
    mask = torch.tensor([[[True, False, True]]])
    try:
        weights = masked_softmax(scores, mask)
    except (IndexError, RuntimeError):
        weights = None
    assert weights is not None, (
        "A mask with one row should count for every query: masked_fill and where "
        "broadcast, an index such as scores[~mask] does not."
    )
    expect(
        weights,
        softmax_of(scores, mask),
        otherwise="A mask with one row should hide the same keys from every query.",
    )


# %% hidden
def check_nothing_to_look_at(masked_softmax):  # 1 point
    mask = torch.tensor([[[True, True], [True, False]]])
    assert not raises_value_error(masked_softmax, torch.zeros(1, 2, 2), mask), (
        "A ValueError came although every query may look somewhere."
    )
    mask = torch.tensor([[[True, True], [False, False]]])
    assert raises_value_error(masked_softmax, torch.zeros(1, 2, 2), mask), (
        "A query that may look nowhere got weights: raise a ValueError if the mask "
        "hides every key from any query."
    )


def check_random_masks(masked_softmax, random):  # 1 point
    scores = torch.randn(3, 4, 5, generator=random) * 3
    mask = torch.rand(3, 4, 5, generator=random) < 0.6
    mask[..., 0] = True
    expect(
        masked_softmax(scores, mask),
        softmax_of(scores, mask),
        otherwise="On random scores and masks some weights are wrong.",
    )


# %% [markdown] question difficulty=2 minutes=10 reread=why-divide-by-d
# ## Scaled dot-product attention
#
# **Goal.** Average the values, weighted by how well each key answers the query:
# $\text{softmax}(q \cdot k_s / \sqrt{d})$ times $v_s$, summed over $s$, with the weights
# of hidden keys 0; $d$ is the length of axis K. Return the averages and the weights.
# Every query may look at one key at least.

# %% [markdown] hint
# `query @ key.mT` has the shape B T S: one score for each query and key. By what should
# it be divided so that its variance does not grow with the width?

# %% [markdown] hint
# Divide by `math.sqrt(query.shape[-1])`, fill hidden scores with `-torch.inf`, take the
# softmax over the last axis, and multiply by `value`.


# %% solution
def attention(
    query: Float[Tensor, "B T K"],
    key: Float[Tensor, "B S K"],
    value: Float[Tensor, "B S V"],
    mask: Bool[Tensor, "B #T S"],
) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"]]:
    """Average the values by how well their keys answer each query."""
    # BEGIN SOLUTION
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights
    # END SOLUTION


# %% checks
def check_attention_weights(attention):  # 2 points
    query = torch.tensor([[[2.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 2.0]]])
    key = torch.eye(4)[None, :3] * torch.tensor([1.0, 2.0, -1.0])[:, None]
    mask = torch.tensor([[[True, True, False], [True, True, True]]])
    answer = attention(query, key, torch.ones(1, 3, 4), mask)
    assert isinstance(answer, tuple | list), (
        "Return two things, the averages and the weights: `return averages, weights`."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    scores = query @ key.mT
    expect(
        answer[1],
        softmax_of(scores / 2, mask),
        otherwise="The weights are wrong: softmax over the keys of QKᵀ/√K, masked.",
        mistakes={
            "Scores look mis-scaled: divide by the square root of the width.": (
                softmax_of(scores, mask)
            ),
            "Scores are divided by the width itself: take its square root.": (
                softmax_of(scores / 4, mask)
            ),
            "Scores are divided by the root of the number of keys: it is the width of "
            "a key that makes dot products grow.": softmax_of(
                scores / math.sqrt(3), mask
            ),
            "The mask is not used: hidden keys get a weight.": (scores / 2).softmax(-1),
            "The first thing returned should be the averages, the second the weights.": (
                softmax_of(scores / 2, mask) @ torch.ones(1, 3, 4)
            ),
        },
    )


def check_attention_averages(attention):  # 2 points
    query = torch.tensor([[[4.0, 0.0]]])
    key = torch.tensor([[[1.0, 0.0], [-1.0, 0.0]]])
    value = torch.tensor([[[10.0, 0.0], [0.0, 20.0]]])
    mask = torch.ones(1, 1, 2, dtype=torch.bool)
    weights = softmax_of(query @ key.mT / math.sqrt(2), mask)
    averages, _ = attention(query, key, value, mask)
    expect(
        averages,
        weights @ value,
        otherwise="The averages are wrong: multiply the weights by the values.",
        mistakes={
            "The keys are averaged: keys decide where to look, values are what is "
            "taken.": weights @ key,
            "The values are added up without their weights.": value.sum(
                dim=1, keepdim=True
            ),
            "Only the value with the largest weight is taken: an average needs all.": (
                value[:, :1]
            ),
        },
    )


# %% hidden
def check_attention_other_widths(attention, random):  # 2 points
    query = torch.randn(2, 3, 4, generator=random)
    key = torch.randn(2, 5, 4, generator=random)
    value = torch.randn(2, 5, 9, generator=random)
    mask = torch.rand(2, 1, 5, generator=random) < 0.7
    mask[..., 0] = True
    scores = query @ key.mT
    averages, weights = attention(query, key, value, mask)
    expect(
        weights,
        softmax_of(scores / 2, mask),
        otherwise="The weights are wrong where values are wider than keys, or where "
        "one mask counts for all queries.",
        mistakes={
            "The scale is the width of the values: it should be that of the keys, "
            "whose products are added up.": softmax_of(scores / 3, mask),
        },
    )
    expect(
        averages,
        weights @ value,
        otherwise="The averages do not follow from the weights returned.",
    )


# %% [markdown] question difficulty=3 minutes=15 reread=scores-that-learn
# ## Additive scores
#
# **Goal.** Score every key for every query with a small network,
# $v \cdot \tanh(W q + U k)$: the chapter's score without its bias, and with $v$ for its
# $w$. Queries and keys may have different widths, Q and D; A is the width of the network.

# %% [markdown] hint
# $Wq$ does not depend on the key and $Uk$ not on the query. Compute both once: they have
# the shapes B T A and B S A.

# %% [markdown] hint
# To add every query to every key, give each its own axis: `x[:, :, None]` is B T 1 A,
# `y[:, None]` is B 1 S A, and their sum is B T S A. What is left is tanh and `@ v`.


# %% solution
def additive_scores(
    query: Float[Tensor, "B T Q"],
    key: Float[Tensor, "B S D"],
    W: Float[Tensor, "A Q"],
    U: Float[Tensor, "A D"],
    v: Float[Tensor, " A"],
) -> Float[Tensor, "B T S"]:
    """Score every key for every query with a network of one hidden layer."""
    # BEGIN SOLUTION
    mixed = (query @ W.T)[:, :, None] + (key @ U.T)[:, None]  # B T S A
    return mixed.tanh() @ v
    # END SOLUTION


# %% checks
def check_additive_by_hand(additive_scores):  # 3 points
    query = torch.tensor([[[1.0, 0.0], [0.0, 2.0]]])
    key = torch.tensor([[[0.5, 0.0], [0.0, 0.5], [1.0, 1.0]]])
    W = torch.tensor([[1.0, 0.5], [0.0, 1.0], [0.5, -1.0]])
    U = torch.tensor([[0.5, -0.5], [1.0, 0.0], [0.0, 2.0]])
    v = torch.tensor([1.0, -2.0, 0.5])
    mixed = (query @ W.T)[:, :, None] + (key @ U.T)[:, None]
    swapped = (query @ U.T)[:, :, None] + (key @ W.T)[:, None]
    expect(
        additive_scores(query, key, W, U, v),
        mixed.tanh() @ v,
        otherwise="The scores are wrong: v · tanh(W q + U k) for every query and key.",
        mistakes={
            "The tanh is missing: without it the query adds the same to every key, and "
            "the softmax forgets it.": mixed @ v,
            "The tanh comes too late: it belongs inside, before the product with v.": (
                (mixed @ v).tanh()
            ),
            "W and U are swapped: W belongs to the query.": swapped.tanh() @ v,
            "The queries should come before the keys: B T S, not B S T.": (
                (mixed.tanh() @ v).mT
            ),
            "v is not used: the hidden layer is added up, not weighted.": (
                mixed.tanh().sum(dim=-1)
            ),
        },
    )


# %% hidden
def check_additive_other_widths(additive_scores, random):  # 2 points
    query = torch.randn(2, 4, 3, generator=random)
    key = torch.randn(2, 4, 5, generator=random)
    W = torch.randn(6, 3, generator=random)
    U = torch.randn(6, 5, generator=random)
    v = torch.randn(6, generator=random)
    right = ((query @ W.T)[:, :, None] + (key @ U.T)[:, None]).tanh() @ v
    answer = additive_scores(query, key, W, U, v)
    diagonal = right.diagonal(dim1=1, dim2=2)
    expect(
        answer,
        right,
        otherwise="With other widths, or with as many queries as keys, scores are wrong.",
        mistakes={
            "Every query is compared with one key only, the one at its own position: "
            "give queries and keys an axis each.": diagonal,
        },
    )


# %% [markdown] question difficulty=3 minutes=15 reread=labs#attention-without-learning-kernel-regression
# ## Attention without learning
#
# **Goal.** Kernel regression: predict the value at each query as the average of all known
# values, weighted by how near their keys are. The weight of key $k$ for query $q$ is
# proportional to $\exp\left(-\frac{(q - k)^2}{2h^2}\right)$; $h$ is called the width.
# Queries and keys are plain numbers here.

# %% [markdown] hint
# Softmax is "exponential, then divide by the sum": which scores make its weights the
# ones above?

# %% [markdown] hint
# `query[:, None] - key[None, :]` holds every difference, T S. Square, change the sign,
# divide by `2 * width**2`, softmax over the keys, `@ value`.


# %% solution
def kernel_regression(
    query: Float[Tensor, " T"],
    key: Float[Tensor, " S"],
    value: Float[Tensor, " S"],
    width: float,
) -> Float[Tensor, " T"]:
    """Average the values, weighted by how near their keys are to each query."""
    # BEGIN SOLUTION
    scores = -((query[:, None] - key) ** 2) / (2 * width**2)  # T S
    return scores.softmax(dim=-1) @ value
    # END SOLUTION


# %% checks
def check_regression_by_hand(kernel_regression):  # 2 points
    query = torch.tensor([0.0, 1.5])
    key = torch.tensor([0.0, 1.0, 3.0])
    value = torch.tensor([1.0, 5.0, -2.0])
    far = query[:, None] - key
    expect(
        kernel_regression(query, key, value, 0.8),
        (-(far**2) / 1.28).softmax(dim=-1) @ value,
        otherwise="The predictions are wrong: softmax of −(q − k)²/(2h²) over the keys.",
        mistakes={
            "Far keys get the larger weights: the sign of the exponent is missing.": (
                (far**2 / 1.28).softmax(dim=-1) @ value
            ),
            "The distances are not squared.": (-far.abs() / 1.28).softmax(-1) @ value,
            "The factor 2 below the fraction is missing.": (
                (-(far**2) / 0.64).softmax(dim=-1) @ value
            ),
            "The width is not squared.": (-(far**2) / 1.6).softmax(dim=-1) @ value,
            "The weights do not add up to 1: divide by their sum.": (
                (-(far**2) / 1.28).exp() @ value
            ),
            "The weights add up over the queries: the softmax belongs over the keys.": (
                (-(far**2) / 1.28).softmax(dim=0) @ value
            ),
        },
    )


# %% hidden
def check_regression_far_away(kernel_regression):  # 1 point
    query, key = torch.tensor([100.0]), torch.tensor([0.0, 1.0])
    answer = kernel_regression(query, key, torch.tensor([3.0, 7.0]), 0.5)
    assert bool(torch.isfinite(answer).all()), (
        "Far from every key all exponentials are 0, and 0/0 is no number: let softmax "
        "do the division."
    )
    expect(
        answer,
        torch.tensor([7.0]),
        otherwise="Far from every key the nearest one should decide.",
    )


def check_regression_random(kernel_regression, random):  # 1 point
    query = torch.randn(5, generator=random)
    key = torch.randn(7, generator=random)
    value = torch.randn(7, generator=random)
    scores = -((query[:, None] - key) ** 2) / (2 * 0.3**2)
    expect(
        kernel_regression(query, key, value, 0.3),
        scores.softmax(dim=-1) @ value,
        otherwise="On random points some predictions are wrong.",
    )
