"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
points = None

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


@case("08_layer_norm", "q3")
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


@case("08_layer_norm", "q3")
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
