import json

import pytest

from seq2seq_lib.data import Vocabulary
from seq2seq_lib.recipes.experiments import (
    STORED,
    experiment_names,
    load_experiment,
    missing_runs,
    run,
    store_run,
    stored_runs,
)

TINY = """
question = "Is wider better?"

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

[search]
width = 2
max_length = 14

[variants.narrow]

[variants.wide.model]
width = 16
"""


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return load_experiment(str(path))


@pytest.mark.parametrize("name", experiment_names())
def test_every_experiment_of_the_library_compares_something(name):
    experiment = load_experiment(name)
    assert len(experiment.variants) > 1
    recipes = [
        (r.model, r.data, r.training, r.search) for r in experiment.variants.values()
    ]
    assert all(recipes.count(one) == 1 for one in recipes)
    for recipe in experiment.variants.values():
        assert (
            recipe.model_config(Vocabulary("abc"), Vocabulary("ab")).build().config
            is not None
        )


def test_stored_runs_belong_to_their_experiments():
    stored = [path.stem for path in STORED.glob("*.json")]
    for experiment, one in (
        (load_experiment(name), one) for name in stored for one in stored_runs(name)
    ):
        recipe = experiment.recipe(one["variant"], one["seed"])
        assert one["steps"] == recipe.training.steps
        wrong = sum(row["wrong"] for row in one["by_length"])
        assert one["wer"] == wrong / sum(row["words"] for row in one["by_length"])


def test_a_variant_changes_only_what_it_names(tiny):
    narrow, wide = tiny.variants.values()
    assert (narrow.model["width"], wide.model["width"]) == (8, 16)
    assert narrow.training == wide.training
    assert narrow.data == wide.data


def test_a_seed_decides_weights_and_batches(tiny):
    recipe = tiny.recipe("wide", 7)
    assert (recipe.training.seed, recipe.data.seed) == (7, 7)


def test_a_run_is_scored_and_stored_once_for_each_seed(tiny, tmp_path, device):
    results = tmp_path / "results"
    wanted = [("narrow", 0), ("wide", 0), ("narrow", 1), ("wide", 1)]
    assert missing_runs(tiny, [0, 1], directory=results) == wanted
    for variant, seed in (wanted[1], wanted[0], wanted[1]):
        kept = tmp_path / f"{variant}-{seed}"
        done = run(tiny, variant, seed, kept, device=device, progress=False)
        path = store_run(tiny, done, directory=results)
    runs = stored_runs("tiny", directory=results)
    assert [(one["variant"], one["seed"]) for one in runs] == wanted[:2]
    assert missing_runs(tiny, [0, 1], directory=results) == wanted[2:]
    assert json.loads(path.read_text())["question"] == "Is wider better?"
    narrow, wide = runs
    assert wide["weights"] > narrow["weights"]
    assert sum(row["words"] for row in wide["by_length"]) == 500
    assert 0 <= wide["wer"] <= 1
    assert [row["step"] for row in wide["curve"]] == [2, 4]


@pytest.mark.parametrize(
    "before, after, message",
    [
        ("question =", "# question =", "expected a question"),
        ("[variants.narrow]", 'part = "train"\n[variants.narrow]', "unknown keys part"),
        ("width = 16", "widht = 16", "unknown keys widht"),
        ("question", 'part = "train"\nquestion', "part='train'"),
    ],
)
def test_a_wrong_experiment_is_refused(before, after, message, tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(TINY.replace(before, after, 1))
    with pytest.raises(ValueError, match=message):
        load_experiment(str(path))


def test_unknown_names_say_what_there_is(tiny, tmp_path):
    with pytest.raises(ValueError, match=r"one of .*bottleneck"):
        load_experiment("bottle")
    with pytest.raises(ValueError, match=r"no variant .thin.: .* narrow, wide"):
        tiny.recipe("thin", 0)
    with pytest.raises(ValueError, match="run seq2seq experiment tiny"):
        stored_runs("tiny", directory=tmp_path)
