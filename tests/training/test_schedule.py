import math
from itertools import pairwise

import pytest
import torch

from seq2seq_lib.training.schedule import Schedule, learning_rate_factor


def factors(schedule, warmup=10, steps=100):
    return [
        learning_rate_factor(schedule, step, warmup=warmup, steps=steps)
        for step in range(steps)
    ]


@pytest.mark.parametrize("schedule", Schedule)
@pytest.mark.parametrize("warmup", [0, 10])
def test_it_rises_to_the_peak_and_never_above(schedule, warmup):
    values = factors(schedule, warmup)
    assert max(values) == pytest.approx(1)
    rise, fall = values[:warmup], values[max(0, warmup - 1) :]
    assert rise == [(step + 1) / 10 for step in range(warmup)]
    assert fall == sorted(fall, reverse=True)


def test_cosine_equals_pytorch():
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=90)
    expected = []
    for _ in range(90):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert factors(Schedule.COSINE)[10:] == pytest.approx(expected)


def test_the_inverse_square_root_is_the_papers():
    # Vaswani et al. (2017), equation 3, with steps counted from 1
    def paper(step, warmup=10):
        return min(step**-0.5, step * warmup**-1.5)

    values = factors(Schedule.INVERSE_SQUARE_ROOT)
    expected = [paper(step + 1) * math.sqrt(10) for step in range(100)]
    assert values == pytest.approx(expected)


def test_linear_falls_evenly():
    values = factors(Schedule.LINEAR)[10:]
    gaps = [a - b for a, b in pairwise(values)]
    assert gaps == pytest.approx([1 / 90] * 89)
