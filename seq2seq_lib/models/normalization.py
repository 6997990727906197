"""Chapter 8: normalization of padded sequences.

Axes: B batch, T positions, D width. Masks are ``True`` at real positions.
"""

from enum import StrEnum

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


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


class Normalization(nn.Module):
    """One of the kinds, behind one call that knows about padding.

    Args:
        kind: which axis is averaged over.
        width: D.
    """

    def __init__(self, kind: NormKind, width: int) -> None:
        super().__init__()
        self.kind = kind
        match kind:
            case NormKind.NONE:
                self.norm: nn.Module = nn.Identity()
            case NormKind.BATCH:
                self.norm = MaskedBatchNorm(width)
            case NormKind.LAYER:
                self.norm = nn.LayerNorm(width)

    def forward(
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None = None
    ) -> Float[Tensor, "*B D"]:
        """Normalize; without a mask every position is real."""
        # forward, not a call: hooks would cost as much as the work on a single row
        if self.kind is NormKind.BATCH:
            normalized: Tensor = self.norm.forward(x, mask)
        else:
            normalized = self.norm.forward(x)
        return normalized


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
        self, x: Float[Tensor, "*B D"], mask: Bool[Tensor, "*B"] | None
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
