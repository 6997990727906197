"""The emulated device keeps the rules of a GPU, so that other tests can rely on it."""

import copy
from contextlib import nullcontext

import pytest
import torch
from emulated_waits import waits
from torch import nn
from torch.nn import functional as F


@pytest.fixture
def there(emulated):
    return lambda *shape: torch.randn(*shape).to(emulated)


MIXED = {
    "sum": lambda here, there: there + here,
    "sum, turned": lambda here, there: here + there,
    "product": lambda here, there: there @ here,
    "mask": lambda here, there: there.masked_fill(here > 0, 0.0),
    "choice": lambda here, there: torch.where(here > 0, there, 0.0),
    "row": lambda here, there: torch.cat([there, here]),
    "embedding": lambda here, there: F.embedding(here.argsort(), there),
    "gather": lambda here, there: there.gather(1, here.argsort()),
    "written": lambda here, there: here.add_(there.sum()),
    "read by an index": lambda here, there: here[there.argsort()[0]],
    "value without axes in a list": lambda here, there: torch.stack(
        [there.sum(), here.sum()]
    ),
}


@pytest.mark.parametrize("mix", MIXED.values(), ids=MIXED)
def test_a_mix_is_refused(there, mix):
    with pytest.raises(RuntimeError, match=r"same device|emulated"):
        mix(torch.randn(3, 3), there(3, 3))


def test_what_cuda_lets_mix_is_mixed(there):
    matrix = there(3, 3)
    exact = matrix.cpu()
    assert torch.equal((matrix * torch.tensor(2.0)).cpu(), 2 * exact)
    rows = torch.tensor([2, 0])
    assert torch.equal(matrix[rows].cpu(), exact[rows])
    matrix[rows] = torch.tensor(1.0)
    exact[rows] = 1.0
    assert torch.equal(matrix.cpu(), exact)


READS = {
    "item": lambda x: x.sum().item(),
    "truth": lambda x: bool((x > 0).any()),
    "number": lambda x: float(x[0]),
    "list": lambda x: x.tolist(),
    "copy": lambda x: x.cpu(),
    "text": lambda x: f"{x.sum():.2f}",
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 0],
    "comparison": lambda x: torch.equal(x, x),
}


@pytest.mark.parametrize("mode", [nullcontext, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_is_seen_and_where(there, read, mode):
    x = there(3)
    with waits() as seen, mode():
        read(x)
    assert len(seen) == 1
    assert seen[0].where.startswith("test_emulated_device.")


def test_what_reads_nothing_waits_for_nothing(there):
    x = there(3, 3)
    with waits() as seen:
        x[x > 0] = 0.0
        x = x.masked_fill(x < 0, 1.0).softmax(-1)[:, 1:].sum()
    assert not seen


def test_a_copy_waits_unless_it_is_pinned_and_asked_not_to(emulated):
    x = torch.randn(3)
    with waits() as seen:
        x.pin_memory().to(emulated, non_blocking=True)
    assert not seen
    with waits() as seen:
        x.to(emulated, non_blocking=True)
        x.pin_memory().to(emulated)
    assert [wait.why for wait in seen] == ["upload", "upload"]


def test_random_numbers_are_its_own(emulated):
    torch.manual_seed(0)
    here = torch.get_rng_state()
    first = torch.rand(3, device=emulated)
    F.dropout(first)
    assert torch.equal(torch.get_rng_state(), here)
    assert not torch.equal(torch.rand(3, device=emulated), first)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3, device=emulated), first)
    with pytest.raises(RuntimeError, match="device type for generator"):
        torch.rand(3, device=emulated, generator=torch.Generator())


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM, nn.RNN])
@pytest.mark.parametrize("packed", [False, True])
def test_a_recurrence_has_pytorchs_numbers(emulated, kind, packed):
    torch.manual_seed(0)
    here = kind(3, 4, num_layers=2, bidirectional=True, batch_first=True)
    there, x = copy.deepcopy(here).to(emulated), torch.randn(2, 5, 3)

    def loss(layer, x):
        if packed:
            x = nn.utils.rnn.pack_padded_sequence(x, [5, 3], batch_first=True)
        output, _ = layer(x)
        return (output.data if packed else output).square().sum()

    for layer, inputs in ((here, x), (there, x.to(emulated))):
        loss(layer, inputs).backward()
    for one, other in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad)
    with pytest.raises(RuntimeError, match="only be called in training mode"):
        loss(there.eval(), x.to(emulated)).backward()


def test_autocast_sends_a_recurrence_to_float16_and_products_where_asked(emulated):
    layer, x = nn.GRU(3, 4).to(emulated), torch.randn(2, 1, 3, device=emulated)
    with torch.autocast(emulated.type, dtype=torch.bfloat16):
        assert layer(x)[0].dtype is torch.float16
        assert (x[0] @ x[0].mT).dtype is torch.bfloat16
        assert x.softmax(-1).dtype is torch.float32


def test_weights_that_are_one_stay_one(emulated):
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    second.weight = first.weight
    both = nn.ModuleList([first, second])
    before = first.weight
    both.to(emulated)
    assert first.weight is second.weight is before
    assert before.device.type == emulated.type
