"""Commands for authors print, and write only where they are told to."""

import dataclasses
import json
from functools import partial
from pathlib import Path

import pytest
from tiny_models import SEARCH, TINY, copier, published

import seq2seq_lib
from seq2seq_lib.cli import main
from seq2seq_lib.data import (
    Corpus,
    CorpusName,
    Example,
    TaskName,
    load_corpus,
    toy_corpus,
)
from seq2seq_lib.data.toy import ToyTask
from seq2seq_lib.models.saved import save_model
from seq2seq_lib.pretrained import names, open_model
from seq2seq_lib.recipes import load_recipe, running
from seq2seq_lib.training import History

OTHERS = "results/evaluations/others"


def store(directory):
    return ["--store", str(directory)]


def files(directory):
    return {str(p.relative_to(directory)) for p in directory.rglob("*") if p.is_file()}


@pytest.fixture(autouse=True)
def untouched():
    """Whatever a command does here, the library stays as it was."""

    def state():
        home = Path(seq2seq_lib.__file__).parent / "pretrained"
        data = (p for p in home.rglob("*") if p.suffix in (".json", ".safetensors"))
        return {path: path.stat().st_mtime_ns for path in data}

    before = state()
    yield
    assert state() == before


@pytest.mark.parametrize("wrong", [0, 3])
def test_what_a_program_wrote_is_compared(wrong, tmp_path, monkeypatch, capsys):
    examples = [Example(tuple(w), ((w.upper(),),)) for w in ("a", "b", "c", "d", "e")]
    corpus = dataclasses.replace(toy_corpus(ToyTask.COPY), test=examples)
    monkeypatch.setattr("seq2seq_lib.cli.compare.load_corpus", lambda _: corpus)
    path = tmp_path / "written.txt"
    written = ["A1", "B", "C", "D", "E"]
    written[:wrong] = [""] * wrong
    lines = [
        f"{e.source[0].upper()}\t{s}\n" for e, s in zip(examples, written, strict=True)
    ]
    path.write_text("".join(reversed(lines)))
    assert main(["compare", "theirs 1.0", str(path), *store(tmp_path)]) == 0
    result = json.loads((tmp_path / OTHERS / "theirs 1.0.json").read_text("utf-8"))
    assert json.loads(capsys.readouterr().out) == result
    assert result["metrics"]["wer"]["value"] == pytest.approx(wrong / 5)
    assert result["split"] == "pronalsyl"
    path.write_text("".join(lines[1:]))
    assert main(["compare", "theirs", str(path)]) == 2
    assert "lacks 1 of the 5 test words, first 'a'" in capsys.readouterr().err


def test_tune_scores_the_development_part(tmp_path, monkeypatch, capsys):
    model = published(copier(wrong=(4,))[0], tmp_path / "here")
    monkeypatch.setattr("seq2seq_lib.cli.tune.load", lambda *_, **__: model)
    command = ["tune", "model", "--widths", "1", "2", "--alphas", "0", "--words", "30"]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    assert main([*command, *store(tmp_path)]) == 0
    path = tmp_path / "results" / "searches" / "model.json"
    assert json.loads(path.read_text("utf-8")) == shown
    dev = load_corpus(CorpusName.COPY).dev[:30]
    letter = model.source_vocabulary.symbols[4]
    wrong = sum(letter in example.source for example in dev)
    assert shown["rows"][0]["wer"] == pytest.approx(wrong / 30)
    assert main(["tune", "model", "--words", "0"]) == 2
    assert "--words 0: expected at least 1" in capsys.readouterr().err


def test_an_analysis_holds_no_sentence(dictionary, tmp_path, monkeypatch, capsys):
    model = published(dictionary, tmp_path / "here")
    part = [Example(("ein hund rennt",), (("a dog runs",),))]
    corpus = Corpus(
        "multi30k-de-en",
        *(part, part, part),
        *(dictionary.source_vocabulary, dictionary.target_vocabulary),
        TaskName.TRANSLATION,
        "en",
    )
    monkeypatch.setattr("seq2seq_lib.cli.analyze.load", lambda *_, **__: model)
    monkeypatch.setattr("seq2seq_lib.cli.analyze.load_corpus", lambda _: corpus)
    assert main(["analyze", "model", *store(tmp_path)]) == 0
    text = (tmp_path / "results" / "analyses" / "model.json").read_text("utf-8")
    stored = json.loads(text)
    assert stored == json.loads(capsys.readouterr().out)
    assert stored["sha256"] == model.card.sha256
    assert (stored["part"], stored["examples"]) == ("dev", 1)
    assert "rennt" not in text
    assert "dog" not in text


def test_an_experiment_is_printed_and_stored_where_one_says(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(
        "seq2seq_lib.cli.experiment.cache_directory", lambda: tmp_path / "cache"
    )
    path = tmp_path / "tiny.toml"
    path.write_text('question = "Why?"\n' + TINY + "\n[variants.one]\n")
    command = ["experiment", str(path), "--seeds", "0", "--quiet"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["variant"] == "one"
    assert not (tmp_path / "results").exists()
    for expected in (printed, ""):  # what is stored is not run again
        assert main([*command, *store(tmp_path)]) == 0
        shown = capsys.readouterr().out
        assert [json.loads(x)["wer"] for x in shown.splitlines()] == [
            json.loads(x)["wer"] for x in expected.splitlines()
        ]
    stored = json.loads((tmp_path / "results/experiments/tiny.json").read_text("utf-8"))
    assert [run["seed"] for run in stored["runs"]] == [0]


def test_a_run_is_published_with_the_log_of_all_its_parts(
    tmp_path, monkeypatch, capsys
):
    tiny, first = tmp_path / "tiny.toml", tmp_path / "first"
    tiny.write_text(TINY)
    assert main(["train", str(tiny), "--directory", str(first), "--quiet"]) == 0
    monkeypatch.setattr(running, "recipe_names", lambda: ["tiny"])
    monkeypatch.setattr(running, "run_directory", lambda _: first)
    monkeypatch.setattr(running, "load_recipe", lambda _: load_recipe(str(tiny)))
    second = tmp_path / "second.toml"
    second.write_text("start = 'tiny'\n" + TINY)
    run, out = tmp_path / "second", tmp_path / "out"
    assert main(["train", str(second), "--directory", str(run), "--quiet"]) == 0
    command = ["publish", "longer", str(run), "--recipe", str(second)]
    with pytest.raises(SystemExit, match="2"):
        main(command)  # it has to be said where to
    assert main([*command, *store(out)]) == 0
    log = "results/trainings/longer.json"
    assert files(out) == {"weights/longer.json", "weights/longer.safetensors", log}
    rows = History.from_json((out / log).read_text("utf-8")).rows
    assert [row.step for row in rows] == [2, 4, 6, 8]
    # a file alone has no log
    model = str(first / "model.safetensors")
    other = store(tmp_path / "other")
    assert main(["publish", "file", model, "--recipe", str(tiny), *other]) == 0
    assert files(tmp_path / "other") == {
        "weights/file.json",
        "weights/file.safetensors",
    }


class TestEvaluate:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path, monkeypatch):
        """Weights and score files outside the library."""
        here = {"directory": tmp_path / "weights"}
        opener = partial(open_model, **here)
        monkeypatch.setattr("seq2seq_lib.cli.evaluate.open_model", opener)
        monkeypatch.setattr("seq2seq_lib.cli.evaluate.names", partial(names, **here))
        saved, _ = copier(wrong=(4,))
        save_model(tmp_path / "model", saved)
        recipe = tmp_path / "copy.toml"
        recipe.write_text(
            '[data]\ncorpus = "toy-copy"\n[model]\nmodel = "Lookup"\n'
            "[training]\nsteps = 1\n[search]\nwidth = 2\nalpha = 0.5\nmax_length = 30\n"
        )

    def publish(self, tmp_path, *models):
        where = ["--recipe", str(tmp_path / "copy.toml")]
        where += store(tmp_path)
        paths = [str(tmp_path / model) for model in models or ("model",)]
        return main(["publish", "copier", *paths, *where])

    def test_publish_then_evaluate_and_store(self, tmp_path, capsys):
        assert self.publish(tmp_path) == 0
        card = json.loads(capsys.readouterr().out)
        assert (card["recipe"], card["search"]) == ("copy", SEARCH)
        arguments = ["evaluate", "copier", "--part", "test", *store(tmp_path)]
        assert main(arguments) == 0
        shown = json.loads(capsys.readouterr().out)
        stored = json.loads(
            (tmp_path / "results/evaluations/copier.json").read_text("utf-8")
        )
        assert shown == stored
        assert stored["sha256"] == card["sha256"]

    def test_several_runs_are_averaged(self, tmp_path, capsys):
        saved, _ = copier()
        save_model(tmp_path / "other", saved)
        assert self.publish(tmp_path, "model", "other") == 0
        assert json.loads(capsys.readouterr().out)["averaged"] == 2

    @pytest.mark.parametrize(
        "options, complaint",
        [
            (["--part", "dev"], "give --part test"),
            (["--part", "test", "--words", "9"], "leave --words out"),
            (["--part", "test", "--width", "7"], "other search options than the card"),
            (["--part", "test", "--corpus", "toy-sort"], "not on toy-sort"),
        ],
    )
    def test_only_the_final_score_is_stored(self, tmp_path, options, complaint, capsys):
        assert self.publish(tmp_path) == 0
        assert main(["evaluate", "copier", *store(tmp_path), *options]) == 2
        assert complaint in capsys.readouterr().err
        assert not (tmp_path / "results" / "evaluations").exists()

    def test_only_published_models_are_stored(self, tmp_path, capsys):
        model = str(tmp_path / "model")
        assert main(["evaluate", model, "--part", "test", *store(tmp_path)]) == 2
        assert "only scores of models that come with" in capsys.readouterr().err

    def test_a_model_of_another_recipe_is_not_published(self, tmp_path, capsys):
        recipe = tmp_path / "copy.toml"
        recipe.write_text(recipe.read_text().replace("toy-copy", "toy-sort"))
        assert self.publish(tmp_path) == 2
        assert "was not trained by copy" in capsys.readouterr().err
        assert not (tmp_path / "weights").exists()
