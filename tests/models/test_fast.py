import platform

import needs
import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch import nn
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from seq2seq_lib.models import fast
from seq2seq_lib.models.fast import (
    FEW_ROWS,
    Linear,
    lay_out_for_decoding,
    onednn_is_faster,
)
from seq2seq_lib.training.loss import cross_entropy

BRINGS_ONEDNN = needs.system(
    torch.backends.mkldnn.is_available(), "PyTorch was built without oneDNN"
)


@pytest.fixture
def held_back(monkeypatch):
    """As on a processor where oneDNN is faster."""
    monkeypatch.setattr(fast, "onednn_is_faster", lambda: True)


@pytest.fixture
def counted(monkeypatch):
    """How many products oneDNN was asked for."""
    asked = []
    product = fast._product

    def count(*arguments):
        asked.append(arguments)
        return product(*arguments)

    monkeypatch.setattr(fast, "_product", count)
    return asked


@BRINGS_ONEDNN
@pytest.mark.parametrize("shape", [(7, 24), (3, 5, 24), (2, 3, 4, 24)])
def test_it_is_the_layer_of_pytorch(held_back, counted, shape):
    torch.manual_seed(0)
    ours, theirs = Linear(24, 40), nn.Linear(24, 40)
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(shape)
    upstream = torch.randn(*shape[:-1], 40)
    found = []
    for layer in (ours, theirs):
        inputs = x.clone().requires_grad_()
        output = layer(inputs)
        output.mul(upstream).sum().backward()
        found.append((output, inputs.grad, layer.weight.grad, layer.bias.grad))
    for one, other in zip(*found, strict=True):
        assert_close(one, other)
    assert len(counted) == 3  # forward, and back to both factors


@BRINGS_ONEDNN
@pytest.mark.parametrize("stored", ["by row", "by column"])
@pytest.mark.parametrize("rows", [1, FEW_ROWS - 1, FEW_ROWS, 64])
def test_without_gradients_too(held_back, counted, stored, rows):
    torch.manual_seed(0)
    layer = Linear(24, 40)
    if stored == "by column":
        layer.weight.data = layer.weight.data.t().contiguous().t()
    x = torch.randn(rows, 24)
    with torch.inference_mode():
        assert_close(layer(x), nn.functional.linear(x, layer.weight, layer.bias))
    assert len(counted) == (rows >= FEW_ROWS)


@BRINGS_ONEDNN
def test_what_comes_out_may_be_overwritten(held_back):
    torch.manual_seed(0)
    layer = Linear(8, 8)
    x = torch.randn(2, 5, 8, requires_grad=True)
    (ours,) = torch.autograd.grad(layer(x).relu_().sum(), x)
    (theirs,) = torch.autograd.grad(layer(x).relu().sum(), x)
    assert_close(ours, theirs)


@BRINGS_ONEDNN
def test_it_may_have_no_bias(held_back, counted):
    layer, x = Linear(8, 3, bias=False), torch.randn(5, 8, requires_grad=True)
    output = layer(x)
    assert_close(output, x @ layer.weight.T)
    output.sum().backward()
    assert_close(x.grad, layer.weight.sum(dim=0).expand(5, 8))
    assert len(counted) == 3


@BRINGS_ONEDNN
def test_a_frozen_weight_gets_no_gradient(held_back, counted):
    layer = Linear(8, 8)
    layer.requires_grad_(requires_grad=False)
    x = torch.randn(5, 8, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert_close(x.grad, layer.weight.sum(dim=0).expand(5, 8))
    assert len(counted) == 2


@BRINGS_ONEDNN
@pytest.mark.parametrize("faster", [True, False])
def test_its_operations_are_counted(monkeypatch, faster):
    monkeypatch.setattr(fast, "onednn_is_faster", lambda: faster)
    layer, x = Linear(24, 40), torch.randn(3, 5, 24, requires_grad=True)
    with FlopCounterMode(display=False) as counter:
        layer(x).sum().backward()
    assert counter.get_total_flops() == 3 * 2 * 15 * 24 * 40


def test_a_wrong_width_is_explained_by_pytorch(held_back):
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        Linear(8, 8)(torch.randn(9, 7))


def test_other_numbers_are_left_to_pytorch(held_back, counted, device):
    layer = Linear(8, 8).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert layer(torch.randn(9, 8, device=device)).dtype is torch.bfloat16
    with torch.device("meta"):
        assert Linear(8, 3)(torch.randn(9, 8)).shape == (9, 3)
    exact = Linear(3, 4).double()
    x = torch.randn(5, 3, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(exact, x)
    assert not counted


@pytest.mark.parametrize(
    "capability, processor, expected",
    [
        ("AVX512", "vendor_id : AuthenticAMD", True),
        ("AVX512", "vendor_id : GenuineIntel", False),
        ("AVX2", "vendor_id : AuthenticAMD", False),
    ],
)
@BRINGS_ONEDNN
def test_who_is_held_back(monkeypatch, capability, processor, expected):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    monkeypatch.setattr(fast, "_processor", lambda: processor)
    assert onednn_is_faster.__wrapped__() is expected


def test_the_processor_where_there_is_no_proc(monkeypatch):
    monkeypatch.setattr(fast, "CPU_INFO", fast.Path("no such file"))
    assert fast._processor() == platform.processor()


@pytest.mark.parametrize("name", ["attention", "transformer"])
def test_the_layout_of_weights_changes_no_value_and_no_training(name):
    batch = example_batch()
    models = [build(CONFIGS[name]) for _ in range(2)]
    lay_out_for_decoding(models[1])
    expected, laid_out = (dict(model.named_parameters()) for model in models)
    assert list(expected) == list(laid_out)
    assert all(torch.equal(expected[n], laid_out[n]) for n in expected)
    assert not all(weight.is_contiguous() for weight in laid_out.values())
    for model in models:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
        for _ in range(3):
            optimizer.zero_grad()
            cross_entropy(model(batch), batch.target, batch.target_mask).backward()
            optimizer.step()
    for n in expected:
        assert_close(expected[n], laid_out[n], rtol=0, atol=1e-8)


def test_columns_that_would_meet_in_the_cache_stay_rows():
    layers = nn.Sequential(nn.Linear(8, 1000), nn.Linear(8, 1024))
    lay_out_for_decoding(layers)
    assert [layer.weight.is_contiguous() for layer in layers] == [False, True]
