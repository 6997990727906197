import copy
import dataclasses
import json
from functools import partial

import pytest
from tiny_models import SEARCH, copier

from seq2seq_lib.cli import main
from seq2seq_lib.data import Example, toy_corpus
from seq2seq_lib.data.download import find_local
from seq2seq_lib.data.multi30k import FILES
from seq2seq_lib.data.pronalsyl import TEST, TRAIN
from seq2seq_lib.data.toy import ToyTask
from seq2seq_lib.evaluation import scores
from seq2seq_lib.metrics import phoneme_error_rate, word_error_rate
from seq2seq_lib.models.saved import save_model
from seq2seq_lib.pretrained import weights
from seq2seq_lib.pretrained.weights import names


@pytest.fixture
def shipped(tmp_path):
    saved, examples = copier(wrong=(5,))
    weights.ship([saved], "copier", recipe="r", search=SEARCH, directory=tmp_path)
    return weights.load("copier", directory=tmp_path), examples


def test_a_score_file_holds_what_is_quoted(shipped, tmp_path):
    model, examples = shipped
    result = scores.evaluate(model, examples)
    path = scores.store(result, directory=tmp_path / "evaluations")
    stored = json.loads(path.read_text("utf-8"))
    assert path.name == "copier.json"
    assert stored["sha256"] == weights.checksum(tmp_path / "copier.safetensors")
    assert stored["search"] == SEARCH
    assert (stored["split"], stored["part"]) == ("toy-copy", "test")
    letter = model.source_vocabulary.symbols[5]
    spoiled = [letter in example.source for example in examples]
    wer = stored["metrics"]["wer"]
    assert wer["value"] == pytest.approx(sum(spoiled) / len(examples))
    low, high = wer["interval"]
    assert 0 < low < wer["value"] < high < 1
    assert "bootstrap over words:1000" in wer["signature"]
    symbols = [symbol for example in examples for symbol in example.source]
    per = stored["metrics"]["per"]["value"]
    assert per == pytest.approx(symbols.count(letter) / len(symbols))


def test_the_lengths_add_up_to_the_whole(shipped):
    model, examples = shipped
    result = scores.evaluate(model, examples)
    rows = result["by_length"]
    assert sum(row["examples"] for row in rows) == len(examples) == result["examples"]
    wrong = sum(row["examples"] * row["wer"] for row in rows)
    assert wrong / len(examples) == pytest.approx(result["metrics"]["wer"]["value"])
    assert rows[-1]["wer"] > rows[0]["wer"]  # a longer one has more chances to fail
    assert result["sample"]["examples"] == scores.SAMPLE


def test_a_right_file_passes_the_check(shipped):
    model, examples = shipped
    scores.check(model, scores.evaluate(model, examples))


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"sha256": "0"}, "has another sha256: 0"),
        ({"split": "toy-sort"}, "has another split"),
        ({"examples": 7}, "has another examples: 7"),
        ({"search": {**SEARCH, "width": 9}}, "has another search"),
        ({"sample": {"wer": 0.0, "per": 0.0}}, "wer of the first 300 .* says 0.0000"),
        ({"sample": {"wer": float("nan"), "per": 0.0}}, "says nan"),
    ],
)
def test_a_wrong_file_does_not(shipped, change, complaint):
    model, examples = shipped
    result = copy.deepcopy(scores.evaluate(model, examples))
    with pytest.raises(ValueError, match=complaint):
        scores.check(model, {**result, **change})


def test_translations_have_three_figures(dictionary):
    sources = ["ein hund rennt im hund", "zwei hund rennt im hund"] * 4
    right = ["a dog runs in dog", "two dog runs in a dog"] * 4
    examples = [Example((s,), ((r,),)) for s, r in zip(sources, right, strict=True)]
    outputs = scores.outputs_of(dictionary, examples, scores.SearchConfig())
    assert outputs[:2] == ["a dog runs in dog", "two dog runs in dog"]
    found = scores.score_translations(outputs, examples)
    assert list(found) == ["bleu", "chrf", "word_bleu"]
    assert found["bleu"]["signature"].startswith(
        "nrefs:1|bs:1000|seed:12345|case:mixed"
    )
    assert "case:lc" in found["word_bleu"]["signature"]
    for figure in found.values():
        low, high = figure["interval"]
        assert low <= figure["value"] <= high
    (row,) = scores.by_length(outputs, examples)
    assert (row["from"], row["below"], row["examples"]) == (1, 9, 8)
    assert row["bleu"] == found["bleu"]["value"]


def test_another_program_is_scored_on_the_same_words():
    examples = [
        Example(tuple("box"), (("B", "AA", "K", "S"),)),
        Example(tuple("two"), (("T", "UW"),)),
    ]
    said = {"box": ["B", "AA1", "K", "S"], "two": ["T", "W", "UW1", " ", "."]}
    scored = scores.score_pronouncer(said.__getitem__, examples)
    found = scored["metrics"]
    outputs = [["B", "AA", "K", "S"], ["T", "W", "UW"]]
    references = [example.references for example in examples]
    assert found["wer"]["value"] == word_error_rate(outputs, references) == 0.5
    assert found["per"]["value"] == phoneme_error_rate(outputs, references)


def test_words_are_scored_by_kind():
    words = {
        "oxen's": "AA K S AH N Z",  # a sound for each letter but one
        "knights": "N AY T S",
        "added": "AE D AH D",
        "box": "B AA K S",
        "a": "AH",
    }
    examples = [Example(tuple(w), ((*said.split(),),)) for w, said in words.items()]
    examples[-1] = Example(("a",), (("AH",), ("EY",)))
    outputs = [example.references[-1] for example in examples]
    outputs[1] = ("K", "N", "AY", "T", "S")
    found = scores.by_kind(outputs, examples)
    assert {kind: row["examples"] for kind, row in found.items()} == {
        "ends in s": 2,
        "ends in ed or ing": 1,
        "has an apostrophe": 1,
        "has a doubled letter": 1,
        "a sound for each letter": 2,
        "two letters more than sounds": 1,
        "more sounds than letters": 1,
        "several pronunciations": 1,
    }
    assert found["ends in s"]["wer"] == 0.5
    assert found["two letters more than sounds"]["per"] == 1 / 4
    assert found["several pronunciations"]["wer"] == 0
    assert scores.by_kind(outputs[:1], examples[:1]).keys() == {
        "ends in s",
        "has an apostrophe",
        "a sound for each letter",
    }


@pytest.mark.parametrize("wrong", [0, 3])
def test_what_a_program_wrote_is_compared(wrong, tmp_path, monkeypatch, capsys):
    examples = [Example(tuple(w), ((w.upper(),),)) for w in ("a", "b", "c", "d", "e")]
    corpus = dataclasses.replace(toy_corpus(ToyTask.COPY), test=examples)
    monkeypatch.setattr(scores, "load_corpus", lambda _: corpus)
    monkeypatch.setattr(scores, "OTHERS", tmp_path / "others")
    path = tmp_path / "said.txt"
    said = ["A1", "B", "C", "D", "E"]
    said[:wrong] = [""] * wrong
    lines = [
        f"{e.source[0].upper()}\t{s}\n" for e, s in zip(examples, said, strict=True)
    ]
    path.write_text("".join(reversed(lines)))
    assert main(["compare", "theirs 1.0", str(path), "--store"]) == 0
    result = json.loads((tmp_path / "others" / "theirs 1.0.json").read_text("utf-8"))
    assert json.loads(capsys.readouterr().out) == result
    assert result["metrics"]["wer"]["value"] == pytest.approx(wrong / 5)
    assert result["split"] == "pronalsyl"
    path.write_text("".join(lines[1:]))
    assert main(["compare", "theirs", str(path)]) == 2
    assert "lacks 1 of the 5 test words, first 'a'" in capsys.readouterr().err


class TestCommand:
    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path, monkeypatch):
        """Weights and score files outside the library."""
        here = {"directory": tmp_path / "weights"}
        opener = partial(weights.open_model, **here)
        monkeypatch.setattr("seq2seq_lib.cli.scoring.open_model", opener)
        monkeypatch.setattr("seq2seq_lib.cli.scoring.names", partial(names, **here))
        writer = partial(scores.store, directory=tmp_path / "evaluations")
        monkeypatch.setattr("seq2seq_lib.evaluation.scores.store", writer)
        saved, _ = copier(wrong=(4,))
        (tmp_path / "run").mkdir()
        save_model(tmp_path / "run" / "model.safetensors", saved)
        recipe = tmp_path / "copy.toml"
        recipe.write_text(
            '[data]\ncorpus = "toy-copy"\n[model]\nmodel = "Lookup"\n'
            "[training]\nsteps = 1\n[search]\nwidth = 2\nalpha = 0.5\nmax_length = 30\n"
        )

    def ship(self, tmp_path, *models):
        where = ["--recipe", str(tmp_path / "copy.toml")]
        where += ["--directory", str(tmp_path / "weights")]
        paths = [str(tmp_path / model) for model in models or ("run",)]
        return main(["ship", "copier", *paths, *where])

    def test_ship_then_evaluate_and_store(self, tmp_path, capsys):
        assert self.ship(tmp_path) == 0
        card = json.loads(capsys.readouterr().out)
        assert (card["recipe"], card["search"]) == ("copy", SEARCH)
        arguments = ["evaluate", "copier", "--part", "test", "--store"]
        assert main(arguments) == 0
        shown = json.loads(capsys.readouterr().out)
        stored = json.loads((tmp_path / "evaluations/copier.json").read_text("utf-8"))
        assert shown == stored
        assert stored["sha256"] == card["sha256"]

    def test_several_runs_are_averaged(self, tmp_path, capsys):
        saved, _ = copier()
        save_model(tmp_path / "other", saved)
        assert self.ship(tmp_path, "run", "other") == 0
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
        assert self.ship(tmp_path) == 0
        assert main(["evaluate", "copier", "--store", *options]) == 2
        assert complaint in capsys.readouterr().err
        assert not (tmp_path / "evaluations").exists()

    def test_only_shipped_models_are_stored(self, tmp_path, capsys):
        model = str(tmp_path / "run" / "model.safetensors")
        assert main(["evaluate", model, "--part", "test", "--store"]) == 2
        assert "only scores of models that come with" in capsys.readouterr().err

    def test_a_model_of_another_recipe_is_not_shipped(self, tmp_path, capsys):
        recipe = tmp_path / "copy.toml"
        recipe.write_text(recipe.read_text().replace("toy-copy", "toy-sort"))
        assert self.ship(tmp_path) == 2
        assert "was not trained by copy" in capsys.readouterr().err
        assert not (tmp_path / "weights").exists()


CORPORA = {"pronalsyl": (TRAIN, TEST)} | {
    f"multi30k-{direction}": [file for part in FILES.values() for file in part]
    for direction in ("de-en", "en-de")
}


@pytest.mark.parametrize("name", names())
def test_the_stored_scores_are_those_of_the_shipped_weights(name):
    model = weights.load(name)
    stored = model.card.results  # fails if there is no file, or one of other weights
    missing = [f.name for f in CORPORA.get(model.split, ()) if not find_local(f)]
    if missing:
        pytest.skip(f"not in SEQ2SEQ_DATA and not in the cache: {missing[0]}")
    scores.check(model, stored)


def test_every_score_file_belongs_to_a_model():
    files = {path.stem for path in scores.DIRECTORY.glob("*.json")}
    assert files == set(names())
