"""Normalization of chapter 8."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.entry import Entry, of_class
from seq2seq_lib.models.normalization import LayerNorm
from seq2seq_lib.seeds import generator

B, T, D = 2, 3, 8


class _Norm(nn.Module):
    """Layer normalization with a mistake."""

    def __init__(self, width: int, epsilon: float, mistake: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon
        self.mistake = mistake

    def forward(self, x: Tensor) -> Tensor:
        """Wrongly normalized."""
        mistake, epsilon = self.mistake, self.epsilon
        axes = {"positions": (1,), "rows": (0,), "both": (1, 2), "batch": (0, 1)}
        axis = axes.get(mistake, (-1,))
        mean = x.mean(axis, keepdim=True)
        variance = x.var(axis, keepdim=True, correction=mistake == "bessel")
        if mistake == "std bessel":
            y = (x - mean) / (x.std(axis, keepdim=True) + epsilon)
        elif mistake == "outside":
            y = (x - mean) / (variance.sqrt() + epsilon)
        elif mistake == "no epsilon":
            y = (x - mean) / variance.sqrt()
        elif mistake == "variance":
            y = (x - mean) / (variance + epsilon)
        elif mistake == "no mean":
            y = x / (variance + epsilon).sqrt()
        elif mistake == "no variance":
            y = x - mean
        else:
            y = (x - mean) / (variance + epsilon).sqrt()
        weight = 1 if mistake in {"no weight", "bare"} else self.weight
        bias = 0 if mistake in {"no bias", "bare"} else self.bias
        if mistake == "bias first":
            return (y + bias) * weight
        return y * weight + bias


def _wrong(mistake: str) -> Callable[..., nn.Module]:
    return lambda width, epsilon=1e-5: _Norm(width, epsilon, mistake)


_RANDOM = generator(8)
_X = torch.randn(B, T, D, generator=_RANDOM) + 1
LAYER_NORM = {
    "LayerNorm": Entry(
        right=LayerNorm,
        trial=of_class(
            LayerNorm,
            (D, 1e-5),
            # where the variance is about ε, it shows where ε stands
            {"large features": (_X,), "small features": (_X / 300,)},
            required=1,
        ),
        mistakes={
            message: _wrong(mistake)
            for mistake, message in {
                "bare": "weight and bias are missing: scale and shift at the end.",
                "no weight": "the weight is missing: scale at the end.",
                "no bias": "the bias is missing: shift at the end.",
                "bias first": "the bias is added before the weight. Scale, then shift.",
                "positions": "mean and variance run over the positions. Take them over "
                "the features, the last axis.",
                "rows": "mean and variance run over the batch. Take them over the "
                "features, the last axis.",
                "both": "mean and variance run over positions and features together. "
                "Take them over the features only, the last axis.",
                "batch": "mean and variance run over the batch and its positions, as "
                "in batch normalization. Take them over the features, the last axis.",
                "bessel": "the variance is divided by D − 1. Divide by D: "
                "correction=0.",
                "std bessel": "the deviation is that of torch.std, with D − 1 below "
                "it, and ε is added outside the root. Divide by √(variance + ε) with "
                "correction=0.",
                "outside": "ε is added outside the root. Divide by √(variance + ε).",
                "no epsilon": "ε is missing. Divide by √(variance + ε).",
                "variance": "it is divided by the variance. Divide by its root.",
                "no mean": "the mean is not subtracted.",
                "no variance": "it is not divided by √(variance + ε).",
            }.items()
        },
        parts=("output",),
    ),
}
