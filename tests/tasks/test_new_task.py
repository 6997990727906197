"""A task that the library does not have: one class, and one line in the registry."""

import json
from typing import NamedTuple

import pytest
from tiny_models import TINY

from seq2seq_lib.cli import main
from seq2seq_lib.data import Corpus, CorpusName, Example, TaskName
from seq2seq_lib.pretrained import load, open_model
from seq2seq_lib.recipes import load_recipe
from seq2seq_lib.recipes.experiments import Experiment, run
from seq2seq_lib.tasks import TASKS, About, SentenceTask

ABOUT = About("summaries of news", "made up", "none", "Two headlines long.")


class Summarising(SentenceTask):
    """The headline of a text."""

    about = ABOUT
    lengths = (1, 3, 100)

    def prepare(self, line):
        return line.lower()


def with_member(monkeypatch, names, name, value, **attributes):
    """What one more line in an enumeration does."""
    member = str.__new__(names, value)
    vars(member).update(_name_=name, _value_=value, **attributes)
    monkeypatch.setitem(names._member_map_, name, member)
    monkeypatch.setitem(names._value2member_map_, value, member)
    monkeypatch.setattr(names, "_member_names_", [*names._member_names_, name])
    return member


class News(NamedTuple):
    task: TaskName
    corpus: Corpus
    recipe: str


@pytest.fixture
def news(monkeypatch, dictionary, tmp_path):
    task = with_member(monkeypatch, TaskName, "SUMMARY", "summary")
    with_member(monkeypatch, CorpusName, "NEWS", "tiny-news", task=task)
    monkeypatch.setitem(TASKS, task, Summarising())
    pieces = dictionary.source_vocabulary
    texts = {"ein hund rennt im hund": "hund rennt", "zwei hund": "zwei"}
    examples = [Example((text,), ((short,),)) for text, short in texts.items()]
    corpus = Corpus("tiny-news", examples * 9, examples, examples, pieces, pieces, task)
    for module in ("recipes.running", "recipes.experiments", "cli.train"):
        monkeypatch.setattr(f"seq2seq_lib.{module}.load_corpus", lambda _: corpus)
    monkeypatch.setattr("seq2seq_lib.cli.evaluate.load_corpus", lambda _: corpus)
    path = tmp_path / "news.toml"
    text = TINY.replace("toy-copy", "tiny-news").replace('"wer"', '"bleu"')
    path.write_text(text.replace("steps = 4", "steps = 4\nhigher_is_better = true"))
    return News(task, corpus, str(path))


def test_a_model_of_a_new_task_is_trained_scored_and_published(news, tmp_path, capsys):
    directory = tmp_path / "run"
    train = ["train", news.recipe, "--directory", str(directory), "--quiet"]
    assert main(train) == 0
    assert {"bleu", "chrf"} <= json.loads(capsys.readouterr().out).keys()
    model = str(directory / "model.safetensors")
    assert open_model(model).task is news.task
    assert main(["evaluate", model, "--part", "test"]) == 0
    assert {"bleu", "chrf"} <= json.loads(capsys.readouterr().out).keys()
    options = ["--recipe", news.recipe, "--store", str(tmp_path)]
    assert main(["publish", "short", str(directory), *options]) == 0
    published = load("short", directory=tmp_path / "weights")
    assert (published.card.task, published.card.data) == (ABOUT.task, ABOUT.data)
    assert published.task is news.task


def test_its_recipes_follow_its_direction(news, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text(TINY.replace("toy-copy", "tiny-news"))
    with pytest.raises(
        ValueError, match="a recipe measures bleu and chrf on tiny-news"
    ):
        load_recipe(str(path))


def test_an_experiment_stores_the_metrics_of_its_task(news, tmp_path, device):
    recipe = load_recipe(news.recipe)
    experiment = Experiment("e", "Why?", "dev", {"one": recipe})
    done = run(experiment, "one", 0, tmp_path / "e", device=device, progress=False)
    assert {"bleu", "chrf"} <= done.keys()
    assert not {"wer", "per"} & done.keys()
    rows = done["by_length"]
    assert [row["length"] for row in rows] == [2, 5]  # in words
    assert sum(row["reference_words"] for row in rows) == 3
    sums = {key: sum(row[key] for row in rows) for key in rows[0]}
    assert TASKS[news.task].of_counts(sums) == pytest.approx(done["bleu"])


def test_what_is_typed_is_prepared_by_the_task(news, tmp_path, capsys):
    directory = tmp_path / "run"
    main(["train", news.recipe, "--directory", str(directory), "--quiet"])
    capsys.readouterr()
    model = ["--best", "--model", str(directory / "model.safetensors")]
    assert main(["predict", "Zwei HUND", *model]) == 0
    shown = capsys.readouterr().out
    assert main(["predict", "zwei hund", *model]) == 0
    assert capsys.readouterr().out == shown
