"""Chapter 8: how much of the loss reaches each part of a model."""

from collections.abc import Mapping

import torch
from torch import nn


def gradient_norms(parts: Mapping[str, nn.Module]) -> dict[str, float]:
    """The length of the gradient in each part, after ``loss.backward()``.

    Args:
        parts: modules by the name they are drawn under, such as the blocks of an
            encoder.

    Raises:
        ValueError: a part has no gradient.

    >>> layers = nn.Sequential(nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False))
    >>> _ = [nn.init.constant_(layer.weight, 3.0) for layer in layers]
    >>> layers(torch.ones(1, 1)).sum().backward()
    >>> gradient_norms({"first": layers[0], "second": layers[1]})
    {'first': 3.0, 'second': 3.0}
    """
    norms = {}
    for name, module in parts.items():
        gradients = [p.grad for p in module.parameters() if p.grad is not None]
        if not gradients:
            raise ValueError(f"{name!r} has no gradient: call loss.backward() first.")
        norms[name] = float(torch.nn.utils.get_total_norm(gradients))
    return norms
