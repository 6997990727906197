import dataclasses
import json

import pytest
import torch
from tiny_models import TINY

from seq2seq_lib.data import Batch, CorpusName, Vocabulary, encode_pairs, load_corpus
from seq2seq_lib.interface import evaluating
from seq2seq_lib.models.saved import load_model, save_model
from seq2seq_lib.recipes import distillation, load_recipe, recipe_names, running
from seq2seq_lib.recipes.distillation import Unlabelled
from seq2seq_lib.recipes.joint_ngram import JointNGram, Proposal
from seq2seq_lib.recipes.recipe import Proposals
from seq2seq_lib.recipes.running import run_directory, train
from seq2seq_lib.recipes.soft_targets import SoftTargets
from seq2seq_lib.training import History


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
    target = Vocabulary("ab")
    source = target if recipe.model.get("tie_source") else Vocabulary("abc")
    assert recipe.model_config(source, target).build().config is not None


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
        ("toy-copy", "multi30k-de-en", r"monitor='wer': a recipe measures bleu and"),
        ("steps = 4", "steps = 4\nhigher_is_better = true", r"'wer': lower is better"),
        ("[data]", "start = 3\n[data]", r"start=3: expected the name of a model"),
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


def test_a_translation_monitors_what_should_grow(tmp_path):
    path = tmp_path / "tiny.toml"
    text = TINY.replace("toy-copy", "multi30k-de-en").replace('"wer"', '"bleu"')
    path.write_text(text)
    with pytest.raises(ValueError, match="'bleu': higher is better"):
        load_recipe(str(path))
    path.write_text(text.replace("steps = 4", "steps = 4\nhigher_is_better = true"))
    assert load_recipe(str(path)).training.monitor == "bleu"


@pytest.fixture
def second(tiny, tmp_path, device):
    """A recipe that begins where another one ended, and that other's weights."""
    run = tmp_path / "first"
    saved, _ = train(load_recipe(str(tiny)), run, device=device, progress=False)

    def write(old="", new=""):
        text = TINY.replace("steps = 4", "steps = 1\nlearning_rate = 1e-9")
        path = tmp_path / "second.toml"
        start = f"start = '{run / 'model.safetensors'}'\n"
        path.write_text(start + text.replace(old, new, 1))
        return load_recipe(str(path))

    return write, saved


def test_a_recipe_can_begin_from_weights(second, tmp_path, device):
    write, first = second
    begun, _ = train(write(), tmp_path / "second", device=device, progress=False)
    for ours, theirs in zip(
        begun.model.parameters(), first.model.parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
        assert ours is not theirs


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("toy-copy", "toy-sort", "another split than the first: toy-copy, expected"),
        ("width = 8", "width = 16", "another configuration than the first"),
    ],
)
def test_weights_of_another_kind_are_no_beginning(
    second, old, new, message, tmp_path, device
):
    write, _ = second
    with pytest.raises(ValueError, match=message):
        train(write(old, new), tmp_path / "second", device=device, progress=False)
    assert not (tmp_path / "second").exists()


def test_other_dropout_is_no_other_kind(second, tmp_path, device):
    write, first = second
    recipe = write("width = 8", "width = 8\ndropout = 0.4")
    assert first.model.config.dropout != 0.4
    begun, _ = train(recipe, tmp_path / "second", device=device, progress=False)
    assert begun.model.config.dropout == 0.4


def test_a_recipe_can_begin_where_another_one_ended(
    tiny, tmp_path, device, monkeypatch
):
    monkeypatch.setattr(running, "recipe_names", lambda: ["first"])
    monkeypatch.setattr(running, "cache_directory", lambda: tmp_path)
    path = tmp_path / "second.toml"
    steps = "steps = 1\nlearning_rate = 1e-9"
    path.write_text("start = 'first'\n" + TINY.replace("steps = 4", steps))
    second = load_recipe(str(path))
    with pytest.raises(ValueError, match=r"not run to its end.*seq2seq train first"):
        train(second, tmp_path / "second", device=device, progress=False)
    first, _ = train(
        load_recipe(str(tiny)), run_directory("first"), device=device, progress=False
    )
    begun, _ = train(second, tmp_path / "second", device=device, progress=False)
    for ours, theirs in zip(
        begun.model.parameters(), first.model.parameters(), strict=True
    ):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_a_recipe_that_begins_nowhere(tmp_path, device):
    path = tmp_path / "tiny.toml"
    path.write_text("start = 'nowhere.safetensors'\n" + TINY)
    recipe = load_recipe(str(path))
    with pytest.raises(ValueError, match=r"no model 'nowhere\.safetensors'"):
        train(recipe, tmp_path / "run", device=device, progress=False)


def test_a_recipe_can_learn_from_teachers(tmp_path, device, teaching):
    recipe, first = teaching
    taught, _ = train(recipe, tmp_path / "taught", device=device, progress=False)
    (path,) = (tmp_path / "taught").glob("pseudo-labels-*.tsv")
    lines = path.read_text().splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["bad", "cab"]
    # after enough steps the pupil believes what the teacher believes
    corpus = load_corpus(CorpusName.COPY)
    pairs = encode_pairs(
        corpus.dev[:20], corpus.source_vocabulary, corpus.target_vocabulary
    )
    batch = Batch.from_pairs(pairs).to(device)

    def distance(model):
        with evaluating(model):
            return (model(batch).exp() - first.model(batch).exp()).abs().mean()

    torch.manual_seed(recipe.training.seed)
    untaught = taught.model.config.build().to(device)
    assert distance(taught.model) < 0.5 * distance(untaught)


def test_teachers_may_choose_among_proposals(tmp_path, device, monkeypatch, teaching):
    def propose(_, words):
        return [[Proposal(0.0, tuple(word))] for word in words]

    monkeypatch.setattr(JointNGram, "learn", lambda _: None)
    monkeypatch.setattr(JointNGram, "propose", propose)
    recipe, _ = teaching
    recipe = dataclasses.replace(
        recipe,
        distillation=dataclasses.replace(
            recipe.distillation, proposals=Proposals.JOINT_NGRAM
        ),
        training=dataclasses.replace(recipe.training, distillation=0.0, steps=2),
    )
    train(recipe, tmp_path / "taught", device=device, progress=False)
    (path,) = (tmp_path / "taught").glob("pseudo-labels-*.tsv")
    assert path.read_text() == "bad\tb a d\ncab\tc a b\n"
    assert not [*(tmp_path / "taught").glob("soft-targets-*")]  # only labels count
    assert "joint n-gram model" in recipe.learned_from()
    assert "believe" not in recipe.learned_from()


def test_a_killed_run_does_not_ask_its_teachers_again(
    tmp_path, device, monkeypatch, teaching
):
    recipe, _ = teaching
    once, _ = train(recipe, tmp_path / "taught", device=device, progress=False)
    (tmp_path / "taught" / "checkpoint.safetensors").unlink()
    monkeypatch.setattr(SoftTargets, "of", None)  # would not answer
    again, _ = train(recipe, tmp_path / "taught", device=device, progress=False)
    for ours, theirs in zip(
        again.model.parameters(), once.model.parameters(), strict=True
    ):
        assert torch.equal(ours, theirs)


def test_another_teacher_does_not_go_on_with_the_run(tmp_path, device, teaching):
    recipe, first = teaching
    train(recipe, tmp_path / "taught", device=device, progress=False)
    with torch.no_grad():
        next(first.model.parameters()).add_(0.5)
    save_model(recipe.distillation.teachers[0], first)
    with pytest.raises(ValueError, match="checkpoint of another run"):
        train(recipe, tmp_path / "taught", device=device, progress=False)


def test_a_teacher_of_another_split_is_refused(tmp_path, device, teaching):
    recipe, first = teaching
    other = dataclasses.replace(first, split="toy-sort")
    save_model(recipe.distillation.teachers[0], other)
    with pytest.raises(ValueError, match=r"cannot teach this recipe.*another split"):
        train(recipe, tmp_path / "taught", device=device, progress=False)


def test_the_card_of_a_taught_model_names_its_teachers(teaching):
    recipe, _ = teaching
    assert f"believe: {recipe.distillation.teachers[0]}" in recipe.learned_from()
    assert "census" in recipe.learned_from()
    assert load_recipe("pronalsyl-transformer").learned_from() == ""


def test_a_card_tells_of_earlier_teachers_too():
    first, second = (
        load_recipe(f"pronalsyl-transformer-{name}").learned_from()
        for name in ("distilled", "joint")
    )
    assert second.startswith(f"{first}. ")
    assert "invented" in second.removeprefix(first)
    assert "invented" not in first
    third = load_recipe("pronalsyl-transformer-dictionary-2").learned_from()
    assert third.startswith(f"{second}. ")
    added = third.removeprefix(second)
    assert "pronalsyl-transformer-dictionary" in added
    assert "Other such words" in added
    assert "census" not in added  # what they are was said before


def test_sentences_are_no_surnames(tmp_path):
    path = tmp_path / "tiny.toml"
    text = TINY.replace("toy-copy", "multi30k-de-en").replace('monitor = "wer"', "")
    text = text.replace("steps = 4", "steps = 4\ndistillation = 0.5")
    table = "\n[distillation]\nteachers = ['a']\nunlabelled = 'surnames'\n"
    path.write_text(text + table)
    with pytest.raises(ValueError, match="these are words"):
        load_recipe(str(path))


@pytest.fixture
def teaching(tiny, tmp_path, device, monkeypatch):
    """A recipe with a teacher that answers two words too, and that teacher."""
    monkeypatch.setattr(distillation, "surnames", lambda: ["bad", "cab"])
    run = tmp_path / "first"
    saved, _ = train(load_recipe(str(tiny)), run, device=device, progress=False)
    path = tmp_path / "taught.toml"
    table = f"teachers = ['{run / 'model.safetensors'}']\nunlabelled = 'surnames'\n"
    text = TINY.replace("steps = 4", "steps = 60\ndistillation = 1.0\nseed = 7")
    text = text.replace("evaluate_every = 2", "learning_rate = 1e-2")
    path.write_text(text + "\n[distillation]\n" + table)
    return load_recipe(str(path)), saved


def test_the_seed_of_a_recipe_decides_which_words_are_invented(
    teaching, tmp_path, device, monkeypatch
):
    recipe, _ = teaching
    seeds = []

    def sources(kind, corpus, *, seed):
        seeds.append((kind, seed))
        return ["bad"]

    monkeypatch.setattr(Unlabelled, "sources", sources)
    words = dataclasses.replace(
        recipe.distillation, unlabelled=Unlabelled.WORDS, seed=5
    )
    again = dataclasses.replace(recipe, distillation=words)
    train(again, tmp_path / "again", device=device, progress=False)
    assert seeds == [(Unlabelled.WORDS, 5)]


@pytest.mark.parametrize(
    "share, table, message",
    [
        ("0.5", "", r"distillation=0\.5 needs teachers"),
        ("0.0", "teachers = ['a']", r"teachers=\['a'\] teach nothing"),
        ("0.5", "teachers = ['a']\nproposals = 'joint-ngram'", "need something unlab"),
        ("0.5", "teachers = 'a'", "expected a list of values of type str"),
        ("0.5", "teachers = [3]", "expected a list of values of type str"),
        ("0.0", "unlabelled = 'surnames'", "needs teachers to label"),
        ("0.0", "unlabelled = 'towns'", "expected one of"),
        ("0.5", "teachers = ['a']\nseed = 1", "seed=1 of the invented words, but none"),
        ("0.0", "teacher = 'a'", "unknown keys teacher for DistillationConfig"),
        ("1.5", "teachers = ['a']", r"distillation=1\.5: expected 0 to 1"),
    ],
)
def test_a_recipe_that_cannot_teach(tmp_path, share, table, message):
    path = tmp_path / "tiny.toml"
    text = TINY.replace("steps = 4", f"steps = 4\ndistillation = {share}")
    path.write_text(f"{text}\n[distillation]\n{table}\n")
    with pytest.raises(ValueError, match=message):
        load_recipe(str(path))
