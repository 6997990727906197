"""Chapter 8: normalization of padded sequences, and the residual around a sublayer.

Axes: B batch, T positions, D width. Masks are ``True`` at real positions.
"""

from collections.abc import Callable
from enum import StrEnum

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.models.dropout import Dropout


class NormKind(StrEnum):
    """Which axis is averaged over."""

    NONE = "none"
    BATCH = "batch"
    LAYER = "layer"


class NormOrder(StrEnum):
    """Whether a sublayer's input is normalized, or the sum it is added to."""

    PRE = "pre"
    POST = "post"


def layer_norm(
    x: Float[Tensor, "*B D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    *,
    epsilon: float = 1e-5,
) -> Float[Tensor, "*B D"]:
    """Give the features of one position mean 0 and variance 1, then scale and shift.

    y = (x − mean) / √(variance + ε) · weight + bias, mean and variance over D only:
    no other position and no other row has a part in it.
    """
    mean = x.mean(dim=-1, keepdim=True)
    variance = x.var(dim=-1, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon).sqrt() * weight + bias


class LayerNorm(nn.Module):
    """Normalizes every position over its features: ``layer_norm`` with its weights.

    Args:
        width: D.
        epsilon: keeps the division finite.
    """

    def __init__(self, width: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None = None
    ) -> Float[Tensor, "*B D"]:
        """Normalize; a mask changes nothing, since no position sees another."""
        # PyTorch's kernel computes layer_norm in one pass
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.epsilon)


class MaskedBatchNorm(nn.Module):
    """Gives each feature mean 0 and variance 1 over all real positions of the batch.

    In evaluation it uses the running averages of training, as nn.BatchNorm1d does.

    Args:
        width: D.
        epsilon: keeps the division finite.
        momentum: how far the running averages move at each step.
    """

    needs_whole_batch = True  # its rows cannot be divided among threads
    running_mean: Tensor
    running_variance: Tensor

    def __init__(
        self, width: int, *, epsilon: float = 1e-5, momentum: float = 0.1
    ) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_variance", torch.ones(width))

    def forward(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None = None
    ) -> Float[Tensor, "*B D"]:
        """Normalize; padding has no part in the statistics."""
        if self.training:
            mean, variance = self._statistics(x, mask)
        else:
            mean, variance = self.running_mean, self.running_variance
        scale = self.weight / (variance + self.epsilon).sqrt()
        return (x - mean) * scale + self.bias

    def _statistics(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None
    ) -> tuple[Float[Tensor, " D"], Float[Tensor, " D"]]:
        real = (
            torch.ones_like(x[..., :1]) if mask is None else mask[..., None].to(x.dtype)
        )
        count = real.sum()
        positions = tuple(range(x.dim() - 1))  # every axis but the features'
        mean = (x * real).sum(dim=positions) / count
        variance = ((x - mean).square() * real).sum(dim=positions) / count
        with torch.no_grad():  # the running variance is unbiased, as PyTorch's is
            self.running_mean.lerp_(mean, self.momentum)
            unbiased = variance * count / (count - 1).clamp(min=1)
            self.running_variance.lerp_(unbiased, self.momentum)
        return mean, variance


class NoNorm(nn.Module):
    """Leaves everything as it is."""

    def forward(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None = None
    ) -> Float[Tensor, "*B D"]:
        """The input."""
        return x


def make_norm(kind: NormKind, width: int) -> LayerNorm | MaskedBatchNorm | NoNorm:
    """A fresh normalization of this kind; each is called with x and a mask."""
    match kind:
        case NormKind.NONE:
            return NoNorm()
        case NormKind.BATCH:
            return MaskedBatchNorm(width)
        case NormKind.LAYER:
            return LayerNorm(width)


class Residual(nn.Module):
    """Adds a sublayer's output to its input, and normalizes before or after.

    Pre-norm: x + f(norm(x)). Post-norm: norm(x + f(x)). Features of f's output are
    dropped in training.

    Args:
        width: D.
        order: normalize before or after.
        norm: which normalization.
        dropout: the share of features dropped from f's output.
    """

    def __init__(
        self,
        width: int,
        *,
        order: NormOrder = NormOrder.PRE,
        norm: NormKind = NormKind.LAYER,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.order = order
        self.norm = make_norm(norm, width)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "*B D"],
        sublayer: Callable[[Tensor], Tensor],
        mask: Bool[Tensor, "*B"] | None = None,
    ) -> Float[Tensor, "*B D"]:
        """The sum, for a sublayer f that keeps the shape of its input."""
        # forward, not a call: in a decoding step, looking for hooks takes as long
        norm = self.norm.forward
        add = self.dropout.add if self.training else torch.add
        if self.order is NormOrder.PRE:
            return add(x, sublayer(norm(x, mask)))
        return norm(add(x, sublayer(x)), mask)
