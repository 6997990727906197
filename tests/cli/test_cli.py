import dataclasses
import json
import subprocess
import sys

import pytest
from tiny_models import TINY

from seq2seq_lib.cli import main, packing
from seq2seq_lib.models.saved import load_model, save_model
from seq2seq_lib.recipes import load_recipe, running
from seq2seq_lib.training import History


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


def test_a_missing_command_is_an_error(capsys):
    with pytest.raises(SystemExit, match="2"):
        main([])
    assert "train" in capsys.readouterr().err


def test_search_options_reach_the_search(trained, tiny, monkeypatch, tmp_path, capsys):
    used = []

    def record(saved, examples, *, search):
        used.append(search.keywords)
        return {}

    for module in ("scoring", "train"):
        monkeypatch.setattr(f"seq2seq_lib.cli.{module}.measure", record)
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


def test_a_run_is_shipped_with_the_log_of_all_its_parts(
    tiny, trained, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(running, "recipe_names", lambda: ["tiny"])
    monkeypatch.setattr(running, "run_directory", lambda _: trained.parent)
    monkeypatch.setattr(running, "load_recipe", lambda _: load_recipe(str(tiny)))
    monkeypatch.setattr(packing, "DIRECTORY", tmp_path / "weights")
    monkeypatch.setattr(packing, "LOGS", tmp_path / "logs")
    second = tmp_path / "second.toml"
    second.write_text("start = 'tiny'\n" + TINY)
    run = tmp_path / "second"
    assert main(["train", str(second), "--directory", str(run), "--quiet"]) == 0
    assert main(["ship", "longer", str(run), "--recipe", str(second)]) == 0
    assert (tmp_path / "weights" / "longer.safetensors").exists()
    log = History.from_json((tmp_path / "logs" / "longer.json").read_text("utf-8"))
    assert [row.step for row in log.rows] == [2, 4, 6, 8]
    # a file alone has no log, and what goes elsewhere leaves the library's alone
    assert main(["ship", "file", str(trained), "--recipe", str(tiny)]) == 0
    other = str(tmp_path / "other")
    command = ["ship", "other", str(trained.parent), "--recipe", str(tiny)]
    assert main([*command, "--directory", other]) == 0
    assert [path.stem for path in (tmp_path / "logs").iterdir()] == ["longer"]
