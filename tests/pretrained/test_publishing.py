import dataclasses
import json

import pytest
import safetensors.torch
import torch
from tiny_models import example_batch, trained

from seq2seq_lib.data import TaskName, Vocabulary
from seq2seq_lib.models.saved import weights_of
from seq2seq_lib.pretrained import load, names, publish
from seq2seq_lib.pretrained.loading import WEIGHTS
from seq2seq_lib.pretrained.publishing import (
    LARGEST_MODEL,
    LARGEST_TOTAL,
    average,
    check_alike,
)
from seq2seq_lib.tasks import TASKS


@pytest.fixture
def stored(tmp_path):
    card = publish(
        [trained()], "tiny", recipe="r", search={"width": 3}, directory=tmp_path
    )
    return tmp_path, card


def test_a_published_model_computes_what_was_trained(stored, device):
    directory, card = stored
    loaded = load("tiny", directory=directory, device=device)
    batch = example_batch()
    torch.testing.assert_close(
        loaded.model(batch.to(device)).cpu(),
        trained().model(batch),
        rtol=0,
        atol=0.02,
    )
    assert loaded.card == card
    assert loaded.source_vocabulary == Vocabulary("abcdefg")
    assert loaded.split == "toy-copy"
    assert not loaded.model.training
    assert {t.dtype for t in loaded.model.parameters()} == {torch.float32}


def test_weights_are_stored_in_half_precision(stored):
    directory, _ = stored
    tensors = safetensors.torch.load_file(directory / "tiny.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16}
    for name, tensor in weights_of(trained().model).items():
        assert torch.equal(tensors[name], tensor.half())


def test_the_card_says_what_is_in_the_file(stored):
    directory, card = stored
    text = json.loads((directory / "tiny.json").read_text("utf-8"))
    assert text == dataclasses.asdict(card)
    model = trained().model
    assert card.parameters == sum(p.numel() for p in model.parameters())
    assert (card.split, card.recipe, card.averaged) == ("toy-copy", "r", 1)
    assert all(text.values())


@pytest.mark.parametrize(
    "split, licence", [("pronalsyl", "BSD-2-Clause"), ("multi30k-de-en", "research")]
)
def test_the_card_knows_the_terms_of_the_data(tmp_path, split, licence):
    card = publish(
        [trained(split=split)], "m", recipe="r", search={}, directory=tmp_path
    )
    assert licence in card.licence
    assert card.limits


def test_data_of_ones_own_has_the_card_of_its_task(tmp_path):
    with pytest.raises(ValueError, match="'cnn-dm' is not one of the library"):
        trained(split="cnn-dm")
    saved = trained(split="cnn-dm", task=TaskName.TOY)
    card = publish([saved], "m", recipe="r", search={}, directory=tmp_path)
    assert card.split == "cnn-dm"
    assert card.task == TASKS[TaskName.TOY].about.task
    assert load("m", directory=tmp_path).task is TaskName.TOY


def test_the_card_names_what_else_was_learned_from(tmp_path):
    options = {"recipe": "r", "search": {}, "directory": tmp_path}
    plain = publish([trained()], "m", **options)
    card = publish([trained()], "m", also_learned_from="Also towns", **options)
    assert card.data == f"{plain.data}. Also towns"


@pytest.mark.parametrize("name", ["transformer", "attention", "transformer-batch"])
def test_the_average_is_the_mean_of_every_weight(name):
    models = [trained(name, seed) for seed in range(3)]
    for number, saved in enumerate(models):
        with torch.no_grad():
            for parameter in saved.model.parameters():
                parameter.fill_(10.0**number)
    mean = average(models)
    for parameter in mean.parameters():
        torch.testing.assert_close(parameter, torch.full_like(parameter, 37.0))
    assert mean.config == models[0].model.config
    assert models[0].model is not mean


def test_only_models_trained_alike_are_averaged():
    with pytest.raises(ValueError, match="no models to average"):
        average([])
    with pytest.raises(ValueError, match="model 2 has another configuration"):
        average([trained(), trained("attention")])
    with pytest.raises(ValueError, match=r"model 3 has another split .* toy-sort"):
        average([trained(), trained(), trained(split="toy-sort")])
    other = dataclasses.replace(trained(), task=TaskName.PRONUNCIATION)
    with pytest.raises(ValueError, match="model 2 has another task"):
        average([trained(), other])
    other = dataclasses.replace(trained(), target_vocabulary=Vocabulary("abcde"))
    with pytest.raises(ValueError, match="model 2 has another target vocabulary"):
        check_alike([trained(), other])


def test_what_half_precision_cannot_hold_is_refused(tmp_path):
    saved = trained()
    with torch.no_grad():
        next(saved.model.parameters())[0, 0] = 1e5
    with pytest.raises(ValueError, match="100000 does not fit into half precision"):
        publish([saved], "m", recipe="r", search={}, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("seq2seq_lib.pretrained.publishing.LARGEST_MODEL", 1000)
    with pytest.raises(ValueError, match="bytes: publish at most 1,000"):
        publish([trained()], "m", recipe="r", search={}, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_published_files_are_small_enough():
    sizes = [(WEIGHTS / f"{n}.safetensors").stat().st_size for n in names()]
    assert max(sizes, default=0) <= LARGEST_MODEL
    assert sum(sizes) <= LARGEST_TOTAL
    assert {p.stem for p in WEIGHTS.glob("*.json")} == set(names())
