import dataclasses
import json
import shutil
import subprocess
import sys

import pytest
import safetensors.torch
import torch
from tiny_models import CONFIGS, build, example_batch

import seq2seq_lib
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.models.saved import SavedModel, save_model, weights_of
from seq2seq_lib.pretrained.weights import (
    DIRECTORY,
    LARGEST,
    TOGETHER,
    average,
    check_alike,
    load,
    names,
    open_model,
    ship,
)


def trained(name="transformer", seed=0, split="toy-copy"):
    torch.manual_seed(seed)
    model = build(CONFIGS[name], torch.float)
    return SavedModel(model, Vocabulary("abcdefg"), Vocabulary("vwxyz"), split)


@pytest.fixture
def shipped(tmp_path):
    card = ship(
        [trained()], "tiny", recipe="r", search={"width": 3}, directory=tmp_path
    )
    return tmp_path, card


def test_a_shipped_model_computes_what_was_trained(shipped, device):
    directory, card = shipped
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


def test_weights_are_stored_in_half_precision(shipped):
    directory, _ = shipped
    stored = safetensors.torch.load_file(directory / "tiny.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    for name, tensor in weights_of(trained().model).items():
        assert torch.equal(stored[name], tensor.half())


def test_the_card_says_what_is_in_the_file(shipped):
    directory, card = shipped
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
    card = ship([trained(split=split)], "m", recipe="r", search={}, directory=tmp_path)
    assert licence in card.licence
    assert card.limits


def test_a_changed_file_is_refused(shipped):
    directory, _ = shipped
    path = directory / "tiny.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"has the checksum .* but its card says"):
        load("tiny", directory=directory)


def test_the_card_names_what_else_was_learned_from(tmp_path):
    options = {"recipe": "r", "search": {}, "directory": tmp_path}
    plain = ship([trained()], "m", **options)
    card = ship([trained()], "m", also_learned_from="Also towns", **options)
    assert card.data == f"{plain.data}. Also towns"


def test_a_missing_or_odd_card_is_refused(shipped):
    directory, _ = shipped
    path = directory / "tiny.json"
    for text in ("{", '{"name": "tiny"}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"tiny\.json is no model card"):
            load("tiny", directory=directory)
    path.unlink()
    with pytest.raises(ValueError, match=r"tiny\.json is no model card"):
        load("tiny", directory=directory)


def test_an_unknown_name_lists_the_known_ones(shipped):
    directory, _ = shipped
    assert names(directory) == ["tiny"]
    with pytest.raises(ValueError, match="no model 'tyni': expected one of tiny"):
        load("tyni", directory=directory)
    with pytest.raises(ValueError, match="no model 'tyni': expected a file, or one"):
        open_model("tyni", directory=directory)
    with pytest.raises(ValueError, match="no model 'tyni'"):
        seq2seq_lib.load("tyni")


def test_a_model_is_opened_by_name_or_file(shipped, tmp_path):
    directory, card = shipped
    assert open_model("tiny", directory=directory).card == card
    save_model(tmp_path / "own", trained())
    assert type(open_model(str(tmp_path / "own"))) is SavedModel


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
    other = dataclasses.replace(trained(), target_vocabulary=Vocabulary("abcde"))
    with pytest.raises(ValueError, match="model 2 has another target vocabulary"):
        check_alike([trained(), other])


def test_what_half_precision_cannot_hold_is_refused(tmp_path):
    saved = trained()
    with torch.no_grad():
        next(saved.model.parameters())[0, 0] = 1e5
    with pytest.raises(ValueError, match="100000 does not fit into half precision"):
        ship([saved], "m", recipe="r", search={}, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_what_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("seq2seq_lib.pretrained.weights.LARGEST", 1000)
    with pytest.raises(ValueError, match="bytes: at most 1,000 are shipped"):
        ship([trained()], "m", recipe="r", search={}, directory=tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_shipped_files_are_small_enough():
    sizes = [(DIRECTORY / f"{n}.safetensors").stat().st_size for n in names()]
    assert max(sizes, default=0) <= LARGEST
    assert sum(sizes) <= TOGETHER
    assert {p.stem for p in DIRECTORY.glob("*.json")} == set(names())


@pytest.mark.parametrize("name", names())
def test_every_shipped_model_can_be_loaded(name):
    shipped = seq2seq_lib.load(name)
    assert shipped.card.name == name
    assert shipped.split == shipped.card.split
    assert shipped.card.results["split"] == shipped.split


def test_weights_can_be_copied_elsewhere(shipped, tmp_path):
    directory, card = shipped
    other = tmp_path / "copy"
    other.mkdir()
    for name in ("tiny.safetensors", "tiny.json"):
        shutil.copy(directory / name, other)
    assert load("tiny", directory=other).card == card


def test_the_library_does_not_load_what_few_need():
    program = (
        "import sys, seq2seq_lib;"
        "print([m for m in sys.modules if m in "
        "('seq2seq_lib.pretrained.weights', 'seq2seq_lib.training', "
        "'sacrebleu', 'matplotlib')])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
