import dataclasses

import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch.testing import assert_close

from seq2seq_lib.training.scheduled_sampling import sampled_forward


@pytest.mark.parametrize("name", CONFIGS)
def test_never_sampling_is_teacher_forcing(name):
    model, batch = build(CONFIGS[name]), example_batch()
    assert_close(sampled_forward(model, batch, 0.0), model(batch), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", CONFIGS)
def test_always_sampling_is_decoding_ones_own_words(name):
    model, batch = build(CONFIGS[name]), example_batch()
    outputs = sampled_forward(model, batch, 1.0)
    own = outputs.argmax(dim=-1)
    read = torch.cat([batch.decoder_input[:, :1], own[:, :-1]], dim=1)
    expected = model(dataclasses.replace(batch, decoder_input=read))
    assert_close(outputs, expected, rtol=0, atol=1e-10)


def test_the_share_of_own_words_is_the_probability():
    class Counting(torch.nn.Module):
        """Always says 5, and remembers what it was told to read."""

        def __init__(self):
            super().__init__()
            self.read = []

        def init_state(self, memory):
            return None

        def step(self, token, state):
            self.read.append(token)
            scores = torch.zeros(len(token), 9)
            scores[:, 5] = 1.0
            return scores, None

    class Model:
        decoder = Counting()

        def encode(self, batch):
            return None

    batch = example_batch()
    gold = torch.full((3000, 6), 4)
    batch = dataclasses.replace(
        batch,
        source=batch.source[:1].expand(3000, -1),
        source_mask=batch.source_mask[:1].expand(3000, -1),
        decoder_input=gold,
        target=gold,
        target_mask=torch.ones_like(gold, dtype=torch.bool),
    )
    model = Model()
    torch.manual_seed(0)
    sampled_forward.__wrapped__(model, batch, 0.3)
    read = torch.stack(model.decoder.read, dim=1)
    assert (read[:, 0] == 4).all()
    # 15,000 draws: five standard deviations are 0.019
    assert (read[:, 1:] == 5).float().mean().item() == pytest.approx(0.3, abs=0.02)
