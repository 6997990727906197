import math

import pytest
import torch
from torch.testing import assert_close

from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.seeds import drawing_from, generator


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_share_is_dropped_and_the_expectation_kept(share, device):
    count = 1 << 20
    dropped = Dropout(share)(torch.ones(count, device=device)).cpu()
    spread = math.sqrt(share * (1 - share) / count)
    assert (dropped == 0).float().mean().item() == pytest.approx(share, abs=5 * spread)
    assert dropped.mean().item() == pytest.approx(1, abs=5 * spread / (1 - share))
    assert len(dropped.unique()) == 2


def test_every_feature_has_the_same_chance_whatever_bits_decide_over_it():
    torch.manual_seed(0)
    zeros = (Dropout(0.5)(torch.ones(1 << 18, 4)) == 0).float()
    assert_close(zeros.mean(dim=0), torch.full((4,), 0.5), rtol=0, atol=5e-3)
    # neighbours, which one random number decides over, are independent
    assert_close(zeros.T.corrcoef(), torch.eye(4), rtol=0, atol=1e-2)


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (5, 7), (0, 3), ()])
def test_any_shape_keeps_its_form(shape, device):
    x = torch.ones(shape, device=device, dtype=torch.double)
    dropped = Dropout(0.5)(x)
    assert dropped.shape == x.shape
    assert dropped.dtype == x.dtype


def test_gradients_pass_where_features_passed(device):
    x = torch.ones(100, device=device, requires_grad=True)
    dropped = Dropout(0.25)(x)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert_close(gradient, dropped.detach())


def test_adding_what_is_dropped_is_adding_after_dropping(device):
    x, said = torch.randn(2, 50, device=device).unbind(0)
    said.requires_grad_()
    dropout = Dropout(0.5)
    torch.manual_seed(1)
    separate = x + dropout(said)
    torch.manual_seed(1)
    together = dropout.add(x, said)
    assert_close(together, separate)
    assert_close(
        torch.autograd.grad(together.sum(), said),
        torch.autograd.grad(separate.sum(), said),
    )


def test_half_precision_is_added_to_full():
    x, said = torch.zeros(64), torch.ones(64, dtype=torch.bfloat16)
    assert Dropout(0.5).add(x, said).dtype is torch.float


def test_nothing_is_dropped_in_evaluation_or_without_a_share():
    x = torch.randn(9)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


def test_a_threads_own_generator_decides():
    x, dropout = torch.ones(100), Dropout(0.5)
    with drawing_from(generator(3)):
        first = dropout(x)
    torch.rand(5)
    with drawing_from(generator(3)):
        again, later = dropout(x), dropout(x)
    assert torch.equal(first, again)
    assert not torch.equal(again, later)
    assert not torch.equal(first, dropout(x))


@pytest.mark.parametrize("share", [-0.1, 1.5])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Dropout(share)
