import io
import subprocess
import sys
from functools import partial

import pytest
import torch

from seq2seq_lib.cli import main
from seq2seq_lib.cli import predict as module
from seq2seq_lib.data import EOS, TaskName, Vocabulary
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.saved import SavedModel, save_model
from seq2seq_lib.pretrained import open_model, publish
from seq2seq_lib.search import SearchConfig


@pytest.fixture
def speller():
    """Says every letter as its capital, less surely as the next one."""
    letters, sounds = Vocabulary("'abc"), Vocabulary("~ABC")
    model = LookupConfig(source_symbols=8, target_symbols=8).build()
    with torch.no_grad():
        model.decoder.letter[EOS, EOS] = 20.0
        for letter in range(4, 8):
            model.decoder.letter[letter, letter] = 20.0
            model.decoder.letter[letter, 4 + (letter + 1) % 4] = 15.0
    return SavedModel(model, letters, sounds, "mine", task=TaskName.PRONUNCIATION)


@pytest.fixture
def pronouncer(speller, tmp_path):
    save_model(tmp_path / "speller", speller)
    return ["--model", str(tmp_path / "speller")]


@pytest.fixture
def translator(dictionary, tmp_path):
    save_model(tmp_path / "dictionary", dictionary)
    return ["--model", str(tmp_path / "dictionary")]


@pytest.fixture
def typed(monkeypatch):
    """Text on standard input."""
    return lambda text: monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_a_word_has_a_best_answer_and_others(pronouncer, capsys):
    assert main(["pronounce", "cab", *pronouncer]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][:2] == ["cab", "C A B"]
    assert len(rows) == module.ALTERNATIVES
    assert len({text for _, text, _ in rows}) == len(rows)
    scores = [float(score) for *_, score in rows]
    assert scores == sorted(scores, reverse=True)
    assert scores[0] <= 0


def test_one_line_for_each_line(pronouncer, typed, capsys):
    typed("cab\nBA\r\n  a  \nb'c\nb’c\n")
    assert main(["pronounce", "--best", *pronouncer]) == 0
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "cab\tC A B",
        "BA\tB A",
        "a\tA",
        "b'c\tB ~ C",
        "b’c\tB ~ C",
    ]
    assert shown.err == ""


def test_what_cannot_be_pronounced_does_not_stop_the_rest(pronouncer, typed, capsys):
    long = "a" * 201
    typed(f"cab\n4ab\n\nx-y\n{long}\nba\n")
    assert main(["pronounce", "--best", *pronouncer]) == 1
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "cab\tC A B",
        "4ab\t",
        "\t",
        "x-y\t",
        f"{long}\t",
        "ba\tB A",
    ]
    explained = shown.err.splitlines()
    assert len(explained) == 4
    assert explained[0].startswith("'4ab': no letter '4'")
    assert explained[1] == "'': an empty line"
    assert "no letter '-' or 'x' or 'y'" in explained[2]
    assert "201 symbols, of which at most 200" in explained[3]


def test_nothing_to_say_at_all(pronouncer, typed, capsys):
    typed("")
    assert main(["pronounce", *pronouncer]) == 0
    assert capsys.readouterr().out == ""
    typed("7\n")
    assert main(["pronounce", *pronouncer]) == 1


def test_order_survives_chunks(speller, monkeypatch):
    monkeypatch.setattr(module, "LINES_READ", 3)
    words = ["abc", "a", "7", "cc", "b", "", "abca", "c"]
    search = SearchConfig()
    found = list(module.predictions(speller, words, search=search, n_best=1))
    assert [one.line for one in found] == words
    assert [
        one.outputs[0][0].replace(" ", "").lower() for one in found if one.outputs
    ] == [word for word in words if word.isalpha()]


def test_bytes_that_are_no_text(pronouncer):
    command = [sys.executable, "-m", "seq2seq_lib", "pronounce", "--best"]
    done = subprocess.run(
        [*command, *pronouncer],
        input=b"cab\na\xff\xfeb\nba\n",
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    lines = done.stdout.decode("utf-8").splitlines()
    assert [lines[0], lines[2]] == ["cab\tC A B", "ba\tB A"]
    assert lines[1].endswith("\t")


def test_sentences(translator, typed, capsys):
    assert main(["translate", "ein hund rennt", "zwei", *translator]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "a dog runs"
    assert len(rows) == 2 * module.ALTERNATIVES
    assert main(["translate", "--best", "ein hund rennt", *translator]) == 0
    assert capsys.readouterr().out == "a dog runs\n"
    typed("ein hund rennt\n\nzwei\n")
    assert main(["translate", *translator]) == 0
    shown = capsys.readouterr()
    assert shown.out == "a dog runs\n\ntwo\n"
    assert shown.err == ""


def test_the_wrong_kind_of_model(pronouncer, translator, capsys):
    assert main(["translate", "a", *pronouncer]) == 2
    assert "was trained for pronunciation, not for translation: choose" in (
        capsys.readouterr().err
    )
    assert main(["pronounce", "a", *translator]) == 2
    assert "not for pronunciation" in capsys.readouterr().err
    assert main(["pronounce", "a", "--model", "nobody"]) == 2
    assert "no model 'nobody': expected a file, or one of" in capsys.readouterr().err


def test_the_card_chooses_the_search(speller, tmp_path, monkeypatch, capsys):
    search = {"width": 4, "alpha": 0.25, "max_length": 33}
    publish([speller], "tiny", recipe="r", search=search, directory=tmp_path)
    here = partial(open_model, directory=tmp_path)
    monkeypatch.setattr(module, "open_model", here)
    used = []

    def record(*_, search, n_best):
        used.append(search)
        return []

    monkeypatch.setattr(module, "predictions", record)
    assert main(["pronounce", "a", "--model", "tiny"]) == 0
    assert main(["pronounce", "a", "--model", "tiny", "--alpha", "0"]) == 0
    assert used == [
        SearchConfig(width=4, alpha=0.25, max_length=33),
        SearchConfig(width=4, alpha=0.0, max_length=33),
    ]
    assert main(["pronounce", "a", "--model", "tiny", "--width", "0"]) == 2
    assert "a beam needs to keep" in capsys.readouterr().err


def test_a_narrow_beam_has_fewer_alternatives(pronouncer, capsys):
    assert main(["pronounce", "cab", "--width", "2", *pronouncer]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_any_model_predicts(pronouncer, translator, capsys):
    assert main(["predict", "CAB", "--best", *pronouncer]) == 0
    assert main(["predict", "ein hund", "--best", *translator]) == 0
    assert capsys.readouterr().out == "CAB\tC A B\na dog\n"


def test_a_line_is_prepared_and_encoded_once(speller, monkeypatch):
    read = []
    encode = Vocabulary.encode

    def record(vocabulary, sequence, **options):
        read.append("".join(sequence))
        return encode(vocabulary, sequence, **options)

    monkeypatch.setattr(Vocabulary, "encode", record)
    found = module.predictions(speller, ["CAB"], search=SearchConfig(), n_best=1)
    assert [one.outputs[0][0] for one in found] == ["C A B"]
    assert read == ["cab"]
