import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from seq2seq_lib.training.loss import cross_entropy

TARGET = torch.tensor([[4, 2, 0], [5, 6, 2]])
MASK = TARGET != 0


@pytest.fixture
def scores():
    return torch.randn(2, 3, 8, dtype=torch.double, requires_grad=True)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 1.0])
def test_the_loss_equals_pytorch(scores, label_smoothing):
    mine = cross_entropy(
        scores.log_softmax(-1), TARGET, MASK, label_smoothing=label_smoothing
    )
    expected = F.cross_entropy(
        scores.flatten(0, 1),
        TARGET.flatten(),
        ignore_index=0,
        label_smoothing=label_smoothing,
    )
    assert_close(mine, expected, rtol=0, atol=1e-10)
    assert_close(
        torch.autograd.grad(mine, scores),
        torch.autograd.grad(expected, scores),
        rtol=0,
        atol=1e-10,
    )


def test_padding_neither_counts_nor_teaches(scores):
    loss = cross_entropy(scores.log_softmax(-1), TARGET, MASK)
    loss.backward()
    assert not scores.grad[0, 2].any()
    assert scores.grad[0, 1].any()


def test_an_impossible_symbol_in_the_padding_is_harmless(scores):
    log_probabilities = scores.log_softmax(-1).detach()
    log_probabilities[0, 2, 0] = -torch.inf
    assert cross_entropy(log_probabilities, TARGET, MASK).isfinite()
