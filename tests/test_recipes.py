import json

import pytest
import torch

from seq2seq_lib.recipes import (
    CorpusName,
    load_corpus,
    load_recipe,
    recipe_names,
    train,
)
from seq2seq_lib.training import History, load_model

TINY = """
[data]
corpus = "toy-copy"
budget = 256
development_words = 20

[model]
model = "RNNSeq2Seq"
width = 8

[training]
steps = 4
evaluate_every = 2
checkpoint_every = 2
monitor = "wer"

[search]
width = 2
max_length = 14
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_of_the_library_can_be_read_and_built(name):
    recipe = load_recipe(name)
    assert recipe.name == name
    assert recipe.training.steps > 0
    assert recipe.model_config(30, 45).build().config is not None


@pytest.mark.parametrize("name", [n for n in CorpusName if n.startswith("toy")])
def test_a_toy_corpus_carries_its_name(name):
    assert load_corpus(name).name == name


def test_a_recipe_leaves_model_and_history(tiny, tmp_path, device):
    run = tmp_path / "run"
    saved, history = train(load_recipe(str(tiny)), run, device=device, progress=False)
    assert saved.split == "toy-copy"
    loaded = load_model(run / "model.safetensors", device=device)
    for ours, theirs in zip(
        saved.model.parameters(), loaded.model.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)
    assert History.from_json((run / "history.json").read_text()) == history
    assert [row.step for row in history.rows] == [2, 4]
    assert set(history.rows[0].metrics) == {"wer", "per"}


def test_the_same_recipe_gives_the_same_model(tiny, tmp_path, device):
    recipe = load_recipe(str(tiny))
    files = []
    for name in ("a", "b"):
        torch.manual_seed(len(files))
        train(recipe, tmp_path / name, device=device, progress=False)
        files.append((tmp_path / name / "model.safetensors").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("budget = 256", "bugdet = 256", r"unknown keys bugdet for DataConfig"),
        ("toy-copy", "toy-cpoy", r"'toy-cpoy': expected one of .*toy-copy"),
        ("steps = 4", "", r"TrainingConfig needs steps"),
        ("steps = 4", "steps = 0", r"steps=0: expected at least 1"),
        ("[search]", "[serach]", r"unknown tables \['serach'\]: expected data, model"),
        ("[training]", "[train]", r"no table \[training\]"),
        ("width = 8", "widht = 8", r"unknown keys widht for RNNSeq2SeqConfig"),
        ("RNNSeq2Seq", "RNN", r"unknown model 'RNN': expected one of"),
        ("width = 8", "width = ", r"tiny.toml': Invalid value"),
        ("width = 8", "width = 7", r"width=7 does not split into two directions"),
        ("width = 2", "width = 0", r"width=0: a beam needs to keep at least one"),
        ("max_length = 14", "max_length = 0", r"max_length=0 leaves no room"),
        ('monitor = "wer"', 'monitor = "wre"', r"monitor='wre': a recipe measures wer"),
        ("words = 20", "words = -5", r"development_words=-5: expected 0 or more"),
    ],
)
def test_a_wrong_recipe_says_where(tmp_path, old, new, message):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        load_recipe(str(path))


def test_an_unknown_recipe_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no recipe 'revrese': .*reverse-attention"):
        load_recipe("revrese")


def test_recipes_are_plain_enough_to_be_printed(tiny):
    assert json.loads(json.dumps(load_recipe(str(tiny)).model))["width"] == 8


def test_evaluation_keeps_to_the_recipes_length(tmp_path, device):
    path = tmp_path / "learned.toml"
    model = 'model = "Transformer"\nwidth = 8\npositions = "learned"\nlongest = 16'
    path.write_text(TINY.replace('model = "RNNSeq2Seq"\nwidth = 8', model))
    train(load_recipe(str(path)), tmp_path / "run", device=device, progress=False)
