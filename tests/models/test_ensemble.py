import dataclasses
import itertools

import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch.testing import assert_close

from seq2seq_lib.data import EOS, Vocabulary
from seq2seq_lib.evaluation import encode_sources
from seq2seq_lib.models.ensemble import ensemble
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import beam_search

SOURCE, TARGET = Vocabulary("abcdefg"), Vocabulary("vwxyz")


@pytest.fixture
def device(real_device):
    """Brute force takes long where every operation is a call of Python."""
    return real_device


@pytest.fixture
def models(device):
    dtype = torch.float if device.type == "mps" else torch.double
    kinds = ("transformer-rotary", "attention-lstm", "gru")
    return [
        SavedModel(build(CONFIGS[kind], dtype).to(device), SOURCE, TARGET, "toy-copy")
        for kind in kinds
    ]


@pytest.fixture
def batch(device):
    return example_batch().to(device)


def test_it_believes_the_mean_of_what_all_believe(models, batch):
    together = ensemble(models).model(batch).exp()
    each = [saved.model(batch).exp() for saved in models]
    assert_close(together, sum(each) / 3)
    assert not torch.allclose(together, each[0])


def test_steps_equal_the_full_pass_also_after_rows_were_reordered(models, batch):
    model = ensemble(models).model
    rows = torch.tensor([2, 0, 0], device=batch.source.device)
    memory = model.encode(batch).reorder(rows)
    tokens = batch.decoder_input[rows]
    state = model.decoder.init_state(memory)
    steps = []
    for token in tokens.unbind(1):
        scores, state = model.decoder.step(token, state)
        state = state.reorder(torch.arange(3, device=token.device))
        steps.append(scores)
    assert_close(torch.stack(steps, dim=1), model(batch)[rows])


def test_beam_search_finds_what_brute_force_finds(models):
    saved = ensemble(models)
    memory = encode_sources(saved.model, [[4, 5, 6]])
    found = beam_search(saved.model.decoder, memory, width=81, max_length=3, alpha=0.0)

    def log_probability(tokens):
        state, token, total = saved.model.decoder.init_state(memory), 1, 0.0
        for following in tokens:
            previous = torch.tensor([token], device=memory.mask.device)
            scores, state = saved.model.decoder.step(previous, state)
            total, token = total + scores[0, following].item(), following
        return total

    symbols = [s for s in range(9) if s != EOS]
    outputs = [
        [*said, EOS] for n in range(3) for said in itertools.product(symbols, repeat=n)
    ]
    best = max(outputs, key=log_probability)
    assert [*found[0].best.tokens, EOS] == best


@pytest.mark.parametrize("what", ["split", "source_vocabulary", "target_vocabulary"])
def test_models_of_another_task_do_not_join(models, what):
    other = "course" if what == "split" else Vocabulary("abc")
    stranger = dataclasses.replace(models[1], **{what: other})
    with pytest.raises(ValueError, match=f"model 2 of the ensemble has another {what}"):
        ensemble([models[0], stranger])


def test_an_ensemble_of_none():
    with pytest.raises(ValueError, match="expected at least one"):
        ensemble([])
