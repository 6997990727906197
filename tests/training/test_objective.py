from contextlib import nullcontext

import pytest
import torch
from tiny_models import CONFIGS, build, example_batch

from seq2seq_lib.training import Precision, TrainingConfig, cross_entropy
from seq2seq_lib.training.objective import Objective, Teacher


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


class Scripted(Teacher):
    """A teacher that believes what it is told, on the CPU."""

    sha256 = "…"

    def __init__(self, soft_targets):
        self.soft_targets = soft_targets.cpu()

    def __call__(self, batch):
        assert batch.source.device.type == "cpu"
        return self.soft_targets


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_a_teacher_counts_as_far_as_its_share(share, device):
    model, batch = build(CONFIGS["gru"]).to(device), example_batch().to(device)
    soft_targets = random_soft_targets(batch).to(device)
    config = TrainingConfig(steps=1, distillation=share)
    objective = Objective(model, config, Scripted(soft_targets))
    loss = objective(example_batch(), symbols=1)
    expected = 0.0
    for b, t in batch.target_mask.nonzero().tolist():
        log_p, right = model(batch)[b, t], batch.target[b, t]
        # an independent answer: PyTorch's loss for a class, and for probabilities
        hard = torch.nn.functional.cross_entropy(log_p, right)
        soft = torch.nn.functional.cross_entropy(log_p, soft_targets[b, t])
        expected += (1 - share) * hard + share * soft
    torch.testing.assert_close(loss, expected)


def random_soft_targets(batch):
    torch.manual_seed(1)
    soft_targets = torch.rand(*batch.target.shape, 9, dtype=torch.double)
    return soft_targets / soft_targets.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize("precision", Precision)
def test_a_teacher_teaches_in_every_precision(precision, device):
    model, batch = CONFIGS["transformer"].build().to(device).eval(), example_batch()
    config = TrainingConfig(steps=1, distillation=0.5, precision=precision)
    teacher = Scripted(random_soft_targets(batch).float())
    loss = Objective(model, config, teacher)(batch, symbols=1)
    exact = Objective(model, TrainingConfig(steps=1, distillation=0.5), teacher)
    torch.testing.assert_close(
        loss.float(), exact(batch, symbols=1), rtol=0.05, atol=0.05
    )


def test_a_teacher_that_is_a_module_is_not_trained(device):
    class Module(torch.nn.Linear, Teacher):
        sha256 = "…"

        def __call__(self, batch):
            return random_soft_targets(batch)

    model = CONFIGS["gru"].build()
    config = TrainingConfig(steps=1, distillation=0.5)
    with_teacher = Objective(model, config, Module(2, 2))
    assert [*with_teacher.parameters()] == [*model.parameters()]


@pytest.mark.parametrize(
    "share, teacher", [(0.5, None), (0.0, Scripted(torch.zeros(1)))]
)
def test_a_share_needs_a_teacher_and_a_teacher_a_share(share, teacher):
    model = CONFIGS["gru"].build()
    with pytest.raises(ValueError, match=rf"distillation={share} with (a|no) teacher"):
        Objective(model, TrainingConfig(steps=1, distillation=share), teacher)
