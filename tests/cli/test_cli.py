import dataclasses
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_models import TINY

import seq2seq_lib
from seq2seq_lib.cli import AUTHORS, COMMANDS, USERS, main
from seq2seq_lib.models.saved import load_model, save_model
from seq2seq_lib.recipes import running

MOST_FILES = 20


@pytest.fixture
def tiny(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def trained(tiny, tmp_path, capsys):
    assert (
        main(["train", str(tiny), "--directory", str(tmp_path / "run"), "--quiet"]) == 0
    )
    capsys.readouterr()
    return tmp_path / "run" / "model.safetensors"


def test_train_says_where_and_how_well(tiny, tmp_path, capsys):
    directory = tmp_path / "run"
    assert main(["train", str(tiny), "--directory", str(directory), "--quiet"]) == 0
    shown = capsys.readouterr()
    assert str(directory) in shown.err
    result = json.loads(shown.out)
    assert result["part"] == "dev"
    assert result["steps"] == 4
    assert result["per"] >= 0
    assert 0 <= result["wer"] <= 1


def test_runs_live_in_the_cache_unless_told_otherwise(
    tiny, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(running, "cache_directory", lambda: tmp_path / "cache")
    assert main(["train", str(tiny), "--quiet"]) == 0
    assert (tmp_path / "cache" / "runs" / "tiny" / "model.safetensors").exists()
    assert str(tmp_path / "cache" / "runs" / "tiny") in capsys.readouterr().err


def test_evaluate_measures_the_split_the_model_was_trained_on(trained, capsys):
    assert main(["evaluate", str(trained), "--part", "test", "--words", "30"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["split"] == "toy-copy"
    assert result["part"] == "test"
    assert result["words"] == 30


def test_evaluate_refuses_another_split(trained, capsys):
    assert main(["evaluate", str(trained), "--corpus", "pronalsyl"]) == 2
    assert "trained on toy-copy, not on pronalsyl" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["train", "nowhere"], "no recipe 'nowhere': expected a TOML file, or one of"),
        (["evaluate", "nowhere.safetensors"], "nowhere.safetensors"),
        (["evaluate", __file__], "is damaged or no safetensors file"),
        (
            ["train", "reverse-attention", "--device", "warp"],
            "--device warp cannot be used here",
        ),
    ],
)
def test_mistakes_become_one_clear_line(arguments, message, capsys):
    assert main(arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    "option, message", [(["--width", "0"], "width=0: a beam needs")]
)
def test_search_options_are_checked(trained, option, message, capsys):
    assert main(["evaluate", str(trained), *option]) == 2
    assert message in capsys.readouterr().err


def test_the_program_explains_itself():
    shown = subprocess.run(
        [sys.executable, "-m", "seq2seq_lib", "train", "--help"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "reverse-attention" in shown
    assert "goes on from its" in shown


def test_help_groups_commands_and_imports_none():
    program = (
        "import sys\nfrom seq2seq_lib.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('seq2seq_lib.cli.')])"
    )
    command = [sys.executable, "-c", program]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    users, _, authors = shown.partition("for authors of the library:")
    assert authors
    for text, commands in ((users, USERS), (authors, AUTHORS)):
        lines = [line.split(maxsplit=1) for line in text.splitlines()]
        for name, one in commands.items():
            assert [name, one.help] in lines
    assert shown.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: seq2seq {name} ")
    assert len(shown.splitlines()) > 8


def test_one_word_goes_through_few_files(capsys):
    """Who follows a word from the command to the answer opens no more than these."""
    home, found = str(Path(seq2seq_lib.__file__).parent), {}

    def record(frame, event, _):
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED  # no body of a class
        if event == "call" and is_function and code.co_filename.startswith(home):
            found.setdefault(code.co_filename[len(home) + 1 :], set()).add(code.co_name)

    main(["pronounce", "knight"])  # now everything is imported
    before = sys.getprofile()
    sys.setprofile(record)
    try:
        assert main(["pronounce", "knight"]) == 0
    finally:
        sys.setprofile(before)
    assert "N AY T" in capsys.readouterr().out
    assert {"cli/__init__.py", "search/beam.py", "models/saved.py"} <= set(found)
    assert not [file for file in found if file.startswith("training/")]
    assert len(found) <= MOST_FILES, sorted(found)


def test_a_missing_command_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "seq2seq --help" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        main(["pronuonce"])
    assert "'pronounce'" in capsys.readouterr().err


def test_search_options_reach_the_search(trained, tiny, monkeypatch, tmp_path, capsys):
    used = []

    def record(saved, examples, *, search):
        used.append(search.keywords)
        return {}

    monkeypatch.setattr("seq2seq_lib.cli.evaluate.measure", record)
    monkeypatch.setattr("seq2seq_lib.cli.train.measure_together", record)
    options = ["--width", "3", "--alpha", "0.5", "--max-length", "9"]
    assert main(["evaluate", str(trained), *options]) == 0
    assert (
        main(["train", str(tiny), "--directory", str(trained.parent), "--quiet"]) == 0
    )
    assert used == [
        {"width": 3, "alpha": 0.5, "max_length": 9},
        {"width": 2, "alpha": 0.75, "max_length": 14},
    ]


def test_a_model_of_an_unknown_split_says_what_to_do(trained, capsys):
    saved = load_model(trained)
    save_model(trained, dataclasses.replace(saved, split="mine"))
    assert main(["evaluate", str(trained)]) == 2
    assert "trained on 'mine', which this command cannot" in capsys.readouterr().err
