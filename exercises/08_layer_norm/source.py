# %% [markdown]
# # Exercise 8: Layer normalization
#
# You write layer norm and its gradients, the statistics of a padded batch, and a stack of
# sublayers with the norm in either place. Letters are those of the chapter: B batch, T
# positions, D features. Masks are `True` at real positions.

# %% given
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional as F


def norm(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """Layer norm with fresh weights, 1 and 0."""
    return F.layer_norm(x, x.shape[-1:])


def sublayer(
    x: Float[Tensor, "*B D"], W: Float[Tensor, "D D"]
) -> Float[Tensor, "*B D"]:
    """What stands for attention or a feed-forward network."""
    return 2 * (x @ W.T).tanh()


# %% helpers
import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect

STATES = torch.tensor(
    [
        [[1.0, 7.0, 9.0, 15.0], [0.0, 6.0, 6.0, 8.0], [2.0, 2.0, 6.0, 6.0]],
        [[3.0, 9.0, 1.0, 3.0], [4.0, 8.0, 5.0, 11.0], [-1.0, 5.0, 2.0, 0.0]],
    ]
)
WEIGHT = torch.tensor([2.0, 0.5, -1.0, 3.0])
BIAS = torch.tensor([0.5, -1.0, 4.0, 0.0])


def scores_over(x, axes, correction=0):
    variance = x.var(dim=axes, keepdim=True, correction=correction)
    return (x - x.mean(dim=axes, keepdim=True)) / (variance + 1e-5).sqrt()


def several(answer, names):
    wanted = f"Return {len(names)} things, {', '.join(names)}"
    assert isinstance(answer, tuple | list), f"{wanted}: `return first, second`."
    assert len(answer) == len(names), f"{wanted}, not {len(answer)}."
    return answer


def normalized(x):
    return F.layer_norm(x, x.shape[-1:])


def heard(x, W):
    return 2 * (x @ W.T).tanh()


def pre_steps(x, weights):
    for W in weights:
        x = x + heard(normalized(x), W)
    return x


def post_steps(x, weights):
    for W in weights:
        x = normalized(x + heard(x, W))
    return x


def stacked(step, x, weights):
    for W in weights:
        x = step(x, W)
    return x


X = torch.tensor([[[3.0, -1.0, 0.5], [0.0, 2.0, -4.0]]])
LAYERS = torch.tensor(
    [
        [[0.5, -0.2, 0.1], [0.3, 0.4, -0.6], [-0.7, 0.2, 0.2]],
        [[-0.1, 0.6, 0.3], [0.8, -0.3, 0.0], [0.2, 0.1, -0.5]],
    ]
)


def by_autograd(x, weight, upstream, epsilon=1e-5):
    """PyTorch's own three gradients."""
    x, weight = x.clone().requires_grad_(), weight.clone().requires_grad_()
    bias = torch.zeros_like(weight).requires_grad_()
    y = F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)
    return torch.autograd.grad(y, (x, weight, bias), upstream)


UPSTREAM = torch.tensor(
    [
        [[1.0, 0.0, -2.0, 0.5], [0.0, 3.0, 1.0, -1.0], [2.0, 1.0, 0.0, 4.0]],
        [[-1.0, 0.5, 0.0, 2.0], [1.0, 1.0, -3.0, 0.0], [0.0, -2.0, 1.5, 1.0]],
    ]
)
GRADIENTS = ("the gradients of x", "of the weight", "of the bias")


# %% [markdown] question difficulty=2 minutes=10 reread=by-hand-on-three-tokens
# ## Layer norm
#
# **Goal.** Give the features of each position mean 0 and variance 1, then scale and shift:
#
# $$\begin{gathered}
# y_d = w_d\, \frac{x_d - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b_d \\
# \mu = \frac1D \sum_d x_d \qquad \sigma^2 = \frac1D \sum_d (x_d - \mu)^2
# \end{gathered}$$
#
# There may be any number of axes before the features, also none. Write it with means and
# roots: PyTorch's layer would pass the checks, and teach nothing.

# %% [markdown] hint
# Only the features of one position meet in μ and σ². Which axis is D, however many others
# there are? And by what does `x.var` divide unless it is told otherwise?

# %% [markdown] hint
# `x.mean(dim=-1, keepdim=True)` keeps an axis of length 1, so that the difference
# broadcasts; `x.var(dim=-1, keepdim=True, correction=0)` divides by D. ε is added before
# the root is taken.


# %% solution
def layer_norm(
    x: Float[Tensor, "*B D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    *,
    epsilon: float = 1e-5,
) -> Float[Tensor, "*B D"]:
    """Standardize the features of every position, then scale and shift them."""
    # BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon).sqrt() * weight + bias
    # END SOLUTION


# %% checks
def check_layer_norm_by_hand(layer_norm):  # 2 points
    right = scores_over(STATES, -1)
    centred = STATES - STATES.mean(dim=-1, keepdim=True)
    variance = centred.square().mean(dim=-1, keepdim=True)
    size = (STATES.square().mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    expect(
        layer_norm(STATES, WEIGHT, BIAS),
        right * WEIGHT + BIAS,
        otherwise="The outputs are wrong: subtract the mean over the features, divide by "
        "√(σ² + ε), then scale by the weight and add the bias.",
        mistakes={
            "The average runs over the positions: layer norm takes the features of one "
            "position, the last axis.": scores_over(STATES, 1) * WEIGHT + BIAS,
            "The average runs over the batch: rows must not meet, layer norm takes the "
            "features of one position.": scores_over(STATES, 0) * WEIGHT + BIAS,
            "One mean is taken over a whole sequence, positions and features: earlier "
            "positions would hear of later ones.": (
                scores_over(STATES, (1, 2)) * WEIGHT + BIAS
            ),
            "Each feature is averaged over all positions of the batch: that is batch "
            "norm.": scores_over(STATES, (0, 1)) * WEIGHT + BIAS,
            "The variance is divided by D − 1: this is a size, not an estimate, so divide "
            "by D.": scores_over(STATES, -1, correction=1) * WEIGHT + BIAS,
            "The differences are divided by the variance: take its root.": (
                centred / (variance + 1e-5) * WEIGHT + BIAS
            ),
            "The mean is measured but not subtracted.": (
                STATES / (variance + 1e-5).sqrt() * WEIGHT + BIAS
            ),
            "The size is that of x itself: subtract the mean before you square.": (
                centred / size * WEIGHT + BIAS
            ),
            "The weight is not used.": right + BIAS,
            "The bias is not used.": right * WEIGHT,
            "The bias is scaled too: multiply by the weight first, then add the bias.": (
                (right + BIAS) * WEIGHT
            ),
        },
    )


def check_small_features(layer_norm):  # 2 points
    x = torch.tensor([[[-0.010, 0.002, 0.002, 0.006]]])  # mean 0, deviation 0.006
    ones, zeros = torch.ones(4), torch.zeros(4)
    expect(
        layer_norm(x, ones, zeros, epsilon=1e-4),
        x / (0.006**2 + 1e-4) ** 0.5,
        otherwise="Small features come out wrong: add ε to the variance, then take the "
        "root.",
        mistakes={
            "ε stands outside the root: add it to the variance, then take the root.": (
                x / (0.006 + 1e-4)
            ),
            "ε is not used: a position whose features are all equal would become 0/0.": (
                x / 0.006
            ),
            "ε is always 0.00001: use the one that is passed.": (
                x / (0.006**2 + 1e-5) ** 0.5
            ),
        },
    )


# %% hidden
def check_any_number_of_axes(layer_norm, random):  # 1 point
    for shape in ((5,), (2, 3, 2, 5)):
        x = torch.randn(shape, generator=random)
        weight, bias = torch.randn(2, 5, generator=random)
        try:
            answer = layer_norm(x, weight, bias)
        except (IndexError, RuntimeError):
            answer = None
        right = F.layer_norm(x, (5,), weight, bias)
        assert answer is not None, (
            "It should work for one vector and for any number of axes: the features are "
            "the last axis, dim=-1, wherever that is."
        )
        expect(
            answer,
            right,
            otherwise="With fewer or more axes than B T D the outputs are wrong: the "
            "features are the last axis, dim=-1.",
        )


def check_layer_norm_random(layer_norm, random):  # 1 point
    x = 3 * torch.randn(4, 3, 6, generator=random) + 2
    weight, bias = torch.randn(2, 6, generator=random)
    expect(
        layer_norm(x, weight, bias),
        F.layer_norm(x, (6,), weight, bias),
        otherwise="On random states some outputs are wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=padding
# ## The statistics of batch norm
#
# **Goal.** Compute what batch norm needs of a padded batch: for each feature the mean and
# the variance over **all real positions** of all rows. Padding has no part in it, whichever
# number stands there. The variance divides by the number of real positions. Features may lie far
# from 0, at 3000 for example, and still vary by 1 only.

# %% [markdown] hint
# All real positions count the same, in whichever row they stand. How many are there? Where
# can padding enter a second time, after the mean is right?

# %% [markdown] hint
# Either pick: `x[mask]` has the shape (real positions, D). Or multiply by `mask[..., None]`
# before **each** sum, over the axes 0 and 1, and divide by `mask.sum()`. Take differences
# from the mean first, and square them then.


# %% solution
def batch_statistics(
    x: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
) -> tuple[Float[Tensor, " D"], Float[Tensor, " D"]]:
    """The mean and the variance of each feature over all real positions."""
    # BEGIN SOLUTION
    real = x[mask]  # positions D
    return real.mean(dim=0), real.var(dim=0, correction=0)
    # END SOLUTION


# %% checks
def check_statistics_by_hand(batch_statistics):  # 3 points
    x = torch.tensor(
        [
            [[1.0, 10.0], [2.0, 20.0], [6.0, 60.0]],
            [[7.0, -2.0], [90.0, 30.0], [50.0, -40.0]],
        ]
    )
    mask = torch.tensor([[True, True, True], [True, False, False]])
    # real are 1, 2, 6, 7 and 10, 20, 60, −2
    mean, variance = torch.tensor([4.0, 22.0]), torch.tensor([6.5, 542.0])
    cleared, real = x * mask[..., None], x[mask]
    answer = several(
        batch_statistics(x, mask), ("the mean", "the variance of each feature")
    )
    by_row = cleared.sum(dim=1) / mask.sum(dim=1, keepdim=True)
    expect(
        answer[0],
        mean,
        otherwise="The mean is wrong: for each feature, over all real positions.",
        mistakes={
            "Padding has a part in the mean: the mask is not used.": x.mean(dim=(0, 1)),
            "Padding is cleared but counted: divide by the number of real positions.": (
                cleared.mean(dim=(0, 1))
            ),
            "The mask looks inverted: True is a real position.": x[~mask].mean(dim=0),
            "The means of the rows are averaged: then a position of a short row counts "
            "more than one of a long row.": by_row.mean(dim=0),
            "Every row has its own mean: batch norm has one for all rows.": by_row,
            "There is one mean for all features: batch norm has one for each.": (
                real.mean()
            ),
            "Each position is averaged over its features: that is layer norm.": (
                real.mean(dim=-1)
            ),
        },
    )
    expect(
        answer[1],
        variance,
        otherwise="The variance is wrong: the mean of the squared differences from the "
        "mean, over all real positions.",
        mistakes={
            "The variance is divided by the number of positions less one: divide by all "
            "real positions.": real.var(dim=0),
            "This is the standard deviation: its square is the variance.": variance.sqrt(),
            "Padding is back in the variance: cleared to 0 it still differs from the "
            "mean. Clear the squares.": (
                (cleared - mean).square().sum(dim=(0, 1)) / mask.sum()
            ),
            "The mean leaves padding out, the variance does not: use the mask in both.": (
                (x - mean).square().mean(dim=(0, 1))
            ),
            "The variance of all positions, real or not: use the mask here too.": (
                x.var(dim=(0, 1), correction=0)
            ),
            "The squares of real positions are divided by the number of all positions.": (
                ((x - mean).square() * mask[..., None]).mean(dim=(0, 1))
            ),
            "The mean is not subtracted before squaring.": real.square().mean(dim=0),
        },
    )


# %% hidden
def check_far_from_zero(batch_statistics):  # 1 point
    x = torch.tensor([[[3000.0], [3000.5], [3001.0]], [[2999.5], [3000.5], [0.0]]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    mean, variance = batch_statistics(x, mask)
    expect(
        (mean, variance),
        (torch.tensor([3000.3]), torch.tensor([0.26])),
        otherwise="Far from 0 the variance is lost in rounding: subtract the mean first "
        "and square the differences, not the other way round.",
    )


def check_statistics_random(batch_statistics, random):  # 1 point
    x = torch.randn(4, 5, 3, generator=random) + 1
    mask = torch.rand(4, 5, generator=random) < 0.6
    mask[:, :2] = True
    real = x[mask]
    expect(
        batch_statistics(x, mask),
        (real.mean(dim=0), real.var(dim=0, correction=0)),
        otherwise="On random batches some mean or variance is wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=where-the-norm-stands
# ## Before or after
#
# **Goal.** Run states through a stack, one sublayer after the other, in both orders.
# `norm(x)` and `sublayer(x, W)` are given; `weights[0]` belongs to the first sublayer.
#
# - `post_norm`: each step is $\text{norm}(x + f(x))$.
# - `pre_norm`: each step is $x + f(\text{norm}(x))$, and one norm follows the last step.

# %% [markdown] hint
# Both are a loop in which `x` becomes something new. In the figure of the chapter, which
# arrow passes the norm, and which is a sum and nothing else?

# %% [markdown] hint
# `for W in weights:` with `x = norm(x + sublayer(x, W))` in one of them. In the other what
# is added to is `x` as it was, not the norm of it, and `return norm(x)` stands behind the
# loop.


# %% solution
def post_norm(
    x: Float[Tensor, "B T D"], weights: Float[Tensor, "L D D"]
) -> Float[Tensor, "B T D"]:
    """A stack that normalizes each sum."""
    # BEGIN SOLUTION
    for W in weights:
        x = norm(x + sublayer(x, W))
    return x
    # END SOLUTION


def pre_norm(
    x: Float[Tensor, "B T D"], weights: Float[Tensor, "L D D"]
) -> Float[Tensor, "B T D"]:
    """A stack that normalizes what each sublayer hears, and its own end."""
    # BEGIN SOLUTION
    for W in weights:
        x = x + sublayer(norm(x), W)
    return norm(x)
    # END SOLUTION


# %% checks
def check_post_norm(post_norm):  # 2 points
    expect(
        post_norm(X, LAYERS),
        post_steps(X, LAYERS),
        otherwise="Post-norm is wrong: in each step the norm of x + f(x).",
        mistakes={
            "This is pre-norm: in post-norm the sublayer hears x itself, and the sum is "
            "normalized.": normalized(pre_steps(X, LAYERS)),
            "Only the end is normalized: post-norm does it after every sum.": normalized(
                stacked(lambda x, W: x + heard(x, W), X, LAYERS)
            ),
            "Nothing is normalized.": stacked(lambda x, W: x + heard(x, W), X, LAYERS),
            "What the sublayer heard is not added to what it says: normalize x + f(x), "
            "not f(x).": stacked(lambda x, W: normalized(heard(x, W)), X, LAYERS),
            "What the sublayer says is normalized, and the sum is not.": stacked(
                lambda x, W: x + normalized(heard(x, W)), X, LAYERS
            ),
            "Only the first sublayer acts.": post_steps(X, LAYERS[:1]),
            "Only the last sublayer acts: each must hear what the one before gave.": (
                post_steps(X, LAYERS[1:])
            ),
        },
    )


def check_pre_norm(pre_norm):  # 2 points
    expect(
        pre_norm(X, LAYERS),
        normalized(pre_steps(X, LAYERS)),
        otherwise="Pre-norm is wrong: in each step x + f(norm(x)), and one norm behind "
        "the last.",
        mistakes={
            "The norm behind the last step is missing: nothing else bounds the last sum.": (
                pre_steps(X, LAYERS)
            ),
            "This is post-norm: in pre-norm the sum is not normalized, what the sublayer "
            "hears is.": post_steps(X, LAYERS),
            "The norm of x is added, not x: then no path is free of norms.": normalized(
                stacked(lambda x, W: normalized(x) + heard(normalized(x), W), X, LAYERS)
            ),
            "Nothing is added to what the sublayer says: the path around it is missing.": (
                normalized(stacked(lambda x, W: heard(normalized(x), W), X, LAYERS))
            ),
            "The norm stands behind the sublayer: it belongs before it, x + f(norm(x)).": (
                normalized(stacked(lambda x, W: x + normalized(heard(x, W)), X, LAYERS))
            ),
            "Only the input of the first sublayer is normalized: every one has its "
            "norm.": normalized(
                stacked(
                    lambda x, W: x + heard(x, W),
                    X + heard(normalized(X), LAYERS[0]),
                    LAYERS[1:],
                )
            ),
            "All sublayers hear the first input: each must hear the sum so far.": (
                normalized(X + sum(heard(normalized(X), W) for W in LAYERS))
            ),
            "The sublayers come in the wrong order: the first weights first.": (
                normalized(pre_steps(X, LAYERS.flip(0)))
            ),
        },
    )


# %% hidden
def check_deep_stacks(post_norm, pre_norm, random):  # 2 points
    x = 4 * torch.randn(2, 3, 5, generator=random)
    weights = torch.randn(4, 5, 5, generator=random) / 2
    expect(
        post_norm(x, weights),
        post_steps(x, weights),
        otherwise="Post-norm is wrong for another number of sublayers.",
    )
    expect(
        pre_norm(x, weights),
        normalized(pre_steps(x, weights)),
        otherwise="Pre-norm is wrong for another number of sublayers.",
    )


# %% [markdown] question difficulty=4 minutes=25 reread=its-gradient-by-hand
# ## The three gradients
#
# **Goal.** Go back through layer norm by formula, as autograd does for you. `upstream` is
# $\partial \ell / \partial y$, of the shape of x. Return the gradients of x, of the weight
# and of the bias, in this order. The first is the chapter's,
#
# $$\begin{gathered}
# \frac{\partial \ell}{\partial x_d} = \frac{1}{\sqrt{\sigma^2 + \varepsilon}}
# \left( g_d - \overline{g} - \hat x_d\, \overline{g \hat x} \right) \\
# g_d = w_d\, \frac{\partial \ell}{\partial y_d}
# \end{gathered}$$
#
# with bars for means over the features. The other two you derive from
# $y_d = w_d\, \hat x_d + b_d$: one weight and one bias serve every position.

# %% [markdown] hint
# For one position $\partial y_d / \partial w_d = \hat x_d$ and
# $\partial y_d / \partial b_d = 1$. What is done with the gradients of a number that is
# used at many positions?

# %% [markdown] hint
# With `scores` for $\hat x$, the weight's gradient is `upstream * scores` and the bias's
# is `upstream`, each added up over the axes 0 and 1. In the first, every mean is taken with
# `dim=-1, keepdim=True`, and σ² with `correction=0`.


# %% solution
def layer_norm_gradients(
    x: Float[Tensor, "B T D"],
    weight: Float[Tensor, " D"],
    upstream: Float[Tensor, "B T D"],
    *,
    epsilon: float = 1e-5,
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, " D"], Float[Tensor, " D"]]:
    """The gradients of x, of the weight and of the bias."""
    # BEGIN SOLUTION
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = (g - g.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))
    # END SOLUTION


# %% checks
def check_gradient_of_x(layer_norm_gradients):  # 3 points
    right = by_autograd(STATES, WEIGHT, UPSTREAM)[0]
    answer = several(layer_norm_gradients(STATES, WEIGHT, UPSTREAM), GRADIENTS)[0]
    scale = (STATES.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
    scores = scores_over(STATES, -1)
    g = WEIGHT * UPSTREAM
    mean = g.mean(dim=-1, keepdim=True)
    along = (g * scores).mean(dim=-1, keepdim=True)
    expect(
        answer,
        right,
        otherwise="The gradient of x is wrong: (g − mean of g − x̂ · mean of g x̂), divided "
        "by √(σ² + ε), means over the features.",
        mistakes={
            "The weight is missing from the gradient of x: g is the weight times what "
            "comes from the loss.": by_autograd(STATES, torch.ones(4), UPSTREAM)[0],
            "The path through the mean is missing: subtract the mean of g.": (
                (g - scores * along) / scale
            ),
            "The path through the deviation is missing: subtract x̂ times the mean of "
            "g x̂.": (g - mean) / scale,
            "Only the direct path is there: x also acts through μ and through σ.": (
                g / scale
            ),
            "The division by √(σ² + ε) is missing.": g - mean - scores * along,
            "The gradient is divided by the variance: by its root, once.": (
                (g - mean - scores * along) / scale**2
            ),
            "The bars are means over the features, not sums.": (
                (g - 4 * mean - scores * 4 * along) / scale
            ),
            "The last term is the mean of g x̂ alone: multiply it by x̂, it is the part "
            "of g along x̂.": (g - mean - along) / scale,
        },
    )


def check_gradients_of_weight_and_bias(layer_norm_gradients):  # 2 points
    _, of_weight, of_bias = by_autograd(STATES, WEIGHT, UPSTREAM)
    answer = several(layer_norm_gradients(STATES, WEIGHT, UPSTREAM), GRADIENTS)
    scores = scores_over(STATES, -1)
    expect(
        answer[1],
        of_weight,
        otherwise="The gradient of the weight is wrong: what comes from the loss times "
        "x̂, added up over rows and positions.",
        mistakes={
            "The gradient of the weight takes x itself: the weight multiplies the "
            "standard scores.": (UPSTREAM * STATES).sum(dim=(0, 1)),
            "The gradient of the weight has the weight in it: y is w x̂ + b, so only x̂ is "
            "left.": (WEIGHT * UPSTREAM * scores).sum(dim=(0, 1)),
            "The weight has one gradient for each position: it is one weight, so add "
            "them up.": UPSTREAM * scores,
            "The weight has one gradient for each row: add up over the rows too.": (
                (UPSTREAM * scores).sum(dim=1)
            ),
            "The gradients of the weight are averaged over the positions: they add up.": (
                (UPSTREAM * scores).mean(dim=(0, 1))
            ),
            "The second is the gradient of the weight, the third that of the bias.": (
                of_bias
            ),
        },
    )
    expect(
        answer[2],
        of_bias,
        otherwise="The gradient of the bias is wrong: what comes from the loss, added up "
        "over rows and positions.",
        mistakes={
            "The gradient of the bias has the weight in it: the bias is added after the "
            "scaling.": (WEIGHT * UPSTREAM).sum(dim=(0, 1)),
            "The bias has one gradient for each position: it is one bias, so add them "
            "up.": UPSTREAM,
            "The gradients of the bias are averaged over the positions: they add up.": (
                UPSTREAM.mean(dim=(0, 1))
            ),
        },
    )


# %% hidden
def check_gradients_of_small_features(layer_norm_gradients):  # 1 point
    x = STATES / 100
    expect(
        several(layer_norm_gradients(x, WEIGHT, UPSTREAM, epsilon=1e-3), GRADIENTS),
        by_autograd(x, WEIGHT, UPSTREAM, 1e-3),
        otherwise="With small features the gradients are wrong: ε stands in the root, in "
        "the scale and in the standard scores alike, and it is the one passed.",
    )


def check_gradients_random(layer_norm_gradients, random):  # 1 point
    x, upstream = torch.randn(2, 3, 2, 6, generator=random)
    weight = torch.randn(6, generator=random)
    # so that no position is nearly flat, where rounding would count
    x = x + torch.arange(6)
    expect(
        several(layer_norm_gradients(x, weight, upstream), GRADIENTS),
        by_autograd(x, weight, upstream),
        otherwise="On random states some gradient is wrong.",
    )
