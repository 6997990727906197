"""Chapter 10: how the learning rate rises and falls."""

import math
from enum import StrEnum


class Schedule(StrEnum):
    """What the learning rate does after its warm-up."""

    CONSTANT = "constant"
    COSINE = "cosine"
    LINEAR = "linear"
    INVERSE_SQUARE_ROOT = "inverse square root"


def learning_rate_factor(
    schedule: Schedule, step: int, *, warmup: int, steps: int
) -> float:
    """The share of the peak learning rate that step 0, 1, 2, … uses.

    It rises linearly over the first ``warmup`` steps. Then cosine and linear fall to
    zero behind the last step, and the inverse square root falls as in Vaswani et al.
    (2017): by half whenever the step number grows fourfold.

    >>> factors = [
    ...     learning_rate_factor(Schedule.LINEAR, step, warmup=2, steps=6)
    ...     for step in range(6)
    ... ]
    >>> factors
    [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    if step < warmup:
        return (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    match schedule:
        case Schedule.CONSTANT:
            return 1.0
        case Schedule.COSINE:
            return (1 + math.cos(math.pi * min(1.0, progress))) / 2
        case Schedule.LINEAR:
            return max(0.0, 1 - progress)
        case Schedule.INVERSE_SQUARE_ROOT:
            return math.sqrt(max(1, warmup) / (step + 1))
