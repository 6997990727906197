"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
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


@case("08_layer_norm", "q4")
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


@case("08_layer_norm", "q4")
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
