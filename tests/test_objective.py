from contextlib import nullcontext

import pytest
import torch
from models import CONFIGS, build, example_batch

from seq2seq_lib.training import TrainingConfig, cross_entropy
from seq2seq_lib.training.objective import Objective


def test_the_batch_goes_to_where_the_weights_are(monkeypatch):
    # a device that every machine has and on which nothing of the batch is yet
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    model = CONFIGS["gru"].build().to("meta")
    loss = Objective(model, TrainingConfig(steps=1))(example_batch(), symbols=4)
    assert loss.device.type == "meta"


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_with_all_its_symbols_it_is_the_mean_loss(smoothing, device):
    model, batch = build(CONFIGS["gru"]).to(device), example_batch()
    config = TrainingConfig(steps=1, label_smoothing=smoothing)
    symbols = int(batch.target_mask.sum())
    loss = Objective(model, config)(batch, symbols=symbols)
    there = batch.to(device)
    expected = cross_entropy(
        model(there), there.target, there.target_mask, label_smoothing=smoothing
    )
    torch.testing.assert_close(loss, expected)
