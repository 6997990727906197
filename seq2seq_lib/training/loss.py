"""Chapter 4: the masked loss.

Axes: B batch, T target, V vocabulary.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def cross_entropy(
    log_probabilities: Float[Tensor, "B T V"],
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """The mean surprise at the real target symbols; padding does not count.

    With label smoothing ε the target is not one symbol but a mixture, 1 − ε on the
    right symbol and ε spread evenly over all V:
    loss = −(1 − ε) log p(y) − ε/V Σ_v log p(v).

    Args:
        log_probabilities: what the decoder gave.
        target: the right symbols.
        mask: ``True`` at real symbols.
        label_smoothing: ε.

    >>> log_probabilities = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]]).log()
    >>> mask = torch.tensor([[True, False]])
    >>> cross_entropy(log_probabilities, torch.tensor([[0, 0]]), mask)
    tensor(0.6931)
    """
    loss = summed_cross_entropy(
        log_probabilities, target, mask, label_smoothing=label_smoothing
    )
    return loss / mask.sum()


def summed_cross_entropy(
    log_probabilities: Float[Tensor, "B T V"],
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    *,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """``cross_entropy`` before it is divided by the number of real symbols."""
    right = log_probabilities.gather(-1, target[..., None])[..., 0]  # B T
    if label_smoothing:
        right = right.lerp(log_probabilities.mean(dim=-1), label_smoothing)
    # where, not a product: the loss at padding may be infinite, and ∞ · 0 is not 0
    return -torch.where(mask, right, 0).sum()


def summed_distillation(
    log_probabilities: Float[Tensor, "B T V"],
    soft_targets: Float[Tensor, "B T V"],
    mask: Bool[Tensor, "B T"],
) -> Float[Tensor, ""]:
    """The surprise of a learner, weighted by what a teacher holds probable.

    loss = −Σ_t Σ_v q(v) log p(v), as small as it gets where p is q; padding does not
    count. With all of q on one symbol it is the cross-entropy.

    Args:
        log_probabilities: log p, what the decoder gave.
        soft_targets: q, the teacher's probabilities after the same prefix.
        mask: ``True`` at real symbols.
    """
    surprise = (soft_targets * log_probabilities).sum(dim=-1)  # B T
    return -torch.where(mask, surprise, 0).sum()
