import pytest
import torch
from torch import nn
from torch.testing import assert_close

from seq2seq_lib.models.normalization import (
    LayerNorm,
    MaskedBatchNorm,
    NormKind,
    NormOrder,
    Residual,
    layer_norm,
    make_norm,
)

EXACT = {"rtol": 0, "atol": 1e-10}
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2, [True] + [False] * 4])


@pytest.fixture
def x():
    return 3 + 2 * torch.randn(3, 5, 8, dtype=torch.double)


def test_layer_norm_equals_pytorch(x):
    theirs = nn.LayerNorm(8, dtype=torch.double)
    nn.init.normal_(theirs.weight)
    nn.init.normal_(theirs.bias)
    assert_close(layer_norm(x, theirs.weight, theirs.bias), theirs(x), **EXACT)
    ours = LayerNorm(8).double()
    ours.load_state_dict(theirs.state_dict())
    assert_close(ours(x, MASK), theirs(x), **EXACT)


@pytest.mark.parametrize("mask", [None, torch.ones(3, 5, dtype=torch.bool)])
def test_batch_norm_equals_pytorch_on_unpadded_input(x, mask):
    ours, theirs = MaskedBatchNorm(8).double(), nn.BatchNorm1d(8, dtype=torch.double)
    for module in (ours, theirs):
        nn.init.uniform_(module.weight, 0.5, 1.5, torch.Generator().manual_seed(0))
    x.requires_grad_()
    for step in range(3):
        mine, expected = ours(x + step, mask), theirs((x + step).mT).mT
        assert_close(mine, expected, **EXACT)
        assert_close(
            torch.autograd.grad(mine.sin().sum(), x),
            torch.autograd.grad(expected.sin().sum(), x),
            **EXACT,
        )
    assert_close(ours.running_mean, theirs.running_mean, **EXACT)
    assert_close(ours.running_variance, theirs.running_var, **EXACT)
    assert_close(ours.eval()(x, mask), theirs.eval()(x.mT).mT, **EXACT)


def test_padding_has_no_part_in_the_statistics(x):
    ours, theirs = MaskedBatchNorm(8).double(), nn.BatchNorm1d(8, dtype=torch.double)
    mine = ours(x.masked_fill(~MASK[..., None], 1e6), MASK)
    assert_close(mine[MASK], theirs(x[MASK]), **EXACT)
    assert_close(ours.running_variance, theirs.running_var, **EXACT)


def test_only_layer_norm_leaves_a_row_alone(x):
    layer = make_norm(NormKind.LAYER, 8).double()
    batch = make_norm(NormKind.BATCH, 8).double()
    assert_close(layer(x[:1], MASK[:1]), layer(x, MASK)[:1], **EXACT)
    assert not torch.allclose(batch(x[:1], MASK[:1]), batch(x, MASK)[:1], atol=0.01)
    batch.eval()  # with running averages it does
    assert_close(batch(x[:1], MASK[:1]), batch(x, MASK)[:1], **EXACT)


def test_no_normalization_changes_nothing(x):
    assert torch.equal(make_norm(NormKind.NONE, 8)(x, MASK), x)


@pytest.mark.parametrize("order", NormOrder)
def test_pre_and_post_norm_are_what_they_say(x, order):
    residual = Residual(8, order=order).double()
    nn.init.normal_(residual.norm.weight)
    expected = {
        NormOrder.PRE: x + residual.norm(x).sin(),
        NormOrder.POST: residual.norm(x + x.sin()),
    }
    assert_close(residual(x, torch.sin), expected[order], **EXACT)


@pytest.mark.parametrize("order", NormOrder)
def test_a_residual_drops_only_what_the_sublayer_adds(x, order):
    residual = Residual(8, order=order, norm=NormKind.NONE, dropout=0.5).double()
    added = residual.train()(x, torch.ones_like) - x
    assert added.round(decimals=6).unique().tolist() == [0, 2]


@pytest.mark.parametrize("order", NormOrder)
def test_a_residual_hides_padding_from_batch_norm(x, order):
    residual = Residual(8, order=order, norm=NormKind.BATCH).double()
    garbage = x.masked_fill(~MASK[..., None], 1e6)
    seen, expected = residual(garbage, torch.sin, MASK), residual(x, torch.sin, MASK)
    assert_close(seen[MASK], expected[MASK], **EXACT)
