import pytest
import torch
from emulated_device import Rules
from emulated_waits import waits
from tiny_models import CONFIGS, example_batch

from seq2seq_lib.data import Batches, Pair
from seq2seq_lib.training import Precision, TrainingConfig, fit
from seq2seq_lib.training.objective import Objective
from seq2seq_lib.training.precision import autocast_trouble

PAIRS = [Pair([4, 5, 6], [4, 5]), Pair([7, 8], [5, 6, 7])]


def trained(name, device, precision, steps=2):
    torch.manual_seed(0)
    model = CONFIGS[name].build().to(device)
    config = TrainingConfig(steps=steps, precision=precision)
    fit(model, Batches(PAIRS, budget=64), config, progress=False)
    return model


@pytest.mark.parametrize(
    "name, bfloat16, message",
    [
        ("gru", True, "GRU on emulated computes in float16 where bfloat16"),
        ("lstm", True, "LSTM on emulated computes in float16 where bfloat16"),
        ("transformer", False, "emulated does not compute in bfloat16"),
        ("transformer", True, ""),
    ],
)
def test_a_format_that_does_not_work_is_said_and_replaced(
    name, bfloat16, message, emulated, monkeypatch, capsys
):
    monkeypatch.setattr(Rules, "bfloat16", bfloat16)
    model = trained(name, emulated, Precision.BFLOAT16)
    said = capsys.readouterr().err
    assert message in said
    assert ("training goes on in float32" in said) is bool(message)
    exact = trained(name, emulated, Precision.FLOAT32)
    same = all(map(torch.equal, model.parameters(), exact.parameters()))
    assert same is bool(message)


def test_float16_is_left_to_recurrences(emulated):
    model = CONFIGS["gru"].build().to(emulated)
    assert autocast_trouble(model, emulated, torch.float16) == ""
    objective = Objective(model, TrainingConfig(steps=1, precision=Precision.FLOAT16))
    assert objective.precision is Precision.FLOAT16


def test_asking_draws_no_random_numbers(device):
    model = CONFIGS["lstm"].build().to(device)
    torch.manual_seed(0)
    before = torch.rand(3, device=device), torch.rand(3)
    torch.manual_seed(0)
    autocast_trouble(model, device, torch.bfloat16)
    after = torch.rand(3, device=device), torch.rand(3)
    assert all(map(torch.equal, before, after))


def test_a_gpu_that_only_imitates_bfloat16_is_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: False)
    model = CONFIGS["transformer"].build()
    found = autocast_trouble(model, torch.device("cuda"), torch.bfloat16)
    assert found == "this GPU does not compute in bfloat16"


def test_a_batch_is_sent_without_a_wait(emulated):
    batch = example_batch()
    with waits() as seen:
        there = batch.to(emulated)
    assert not seen
    assert torch.equal(there.source.cpu(), batch.source)
    with waits() as seen:
        batch.source.to(emulated)
    assert len(seen) == 1
