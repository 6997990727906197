"""Instant feedback: otter itself with our checks, on right and wrong answers."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import nbformat
import needs
import pytest
from fresh_machine import COLABS_PIP, INSTALLED, Machine, git, linked, required

from seq2seq_lib.grading import practice
from seq2seq_lib.grading.exercise import Exercise, exercises

pytestmark = pytest.mark.filterwarnings("ignore")  # otter's own
ROOT = Path(__file__).parents[2]
ATTENTION = exercises()["06_attention"]


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What a student's notebook has run so far: what is given, and a wrong answer."""
    monkeypatch.chdir(tmp_path)  # otter keeps a log where it runs
    found = {}
    exec("\n".join(ATTENTION.given), found)
    exec(
        "def kernel_regression(query, key, value, width):\n"
        "    far = (query[:, None] - key) ** 2\n"
        "    return (far / (2 * width**2)).softmax(dim=-1) @ value\n",
        found,
    )
    return found


@needs.system(sys.platform != "win32", "otter reads no UTF-8 there")
@pytest.mark.parametrize("started", [True, False], ids=["started", "plain otter"])
def test_a_check_names_the_mistake_and_the_score(names, started, capsys):
    if started:
        grader = practice.start("06_attention")
    else:
        practice._passed.clear()
        tests = ROOT / "exercises" / "06_attention" / "tests"
        grader = practice.Notebook(tests_dir=str(tests))
    failed = repr(grader.check("q4", global_env=names))
    assert "the sign of the exponent is missing" in failed
    said = capsys.readouterr().out
    assert "Score so far: 0 of 13 points." in said
    assert "Hidden checks decide about 8 more" in said

    exec(ATTENTION_SOLUTION, names)
    assert "All test cases passed" in repr(grader.check("q4", global_env=names))
    assert "Score so far: 2 of 13 points." in capsys.readouterr().out
    missing = repr(grader.check("q1", global_env=names))
    assert "There is no function `masked_softmax`" in missing
    names["masked_softmax"] = unwritten
    assert "is not written yet" in repr(grader.check("q1", global_env=names))
    assert "Score so far: 2 of 13 points." in capsys.readouterr().out


ATTENTION_SOLUTION = """
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width**2)).softmax(dim=-1) @ value
"""


def unwritten(scores, mask):
    raise NotImplementedError


@pytest.fixture
def graded(monkeypatch, tmp_path):
    """The files that were graded; each said something."""
    files = []

    def run(command, **options):
        assert command[1:4] == ["-m", "seq2seq_lib", "grade"]
        files.append(Path(command[4]))
        return subprocess.CompletedProcess(command, 0, "12 of 21\n", "")

    monkeypatch.setattr(practice.subprocess, "run", run)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return files


def test_the_whole_score_is_that_of_the_saved_notebook(graded, monkeypatch, capsys):
    practice.score("06_attention")
    assert "There is no file 06_attention.ipynb" in capsys.readouterr().out
    for name in ("06_attention.ipynb", "my answers.ipynb"):
        Path(name).touch()
    practice.score("06_attention")
    assert capsys.readouterr().out == "12 of 21\n\n"
    monkeypatch.setenv("JPY_SESSION_NAME", str(Path("my answers.ipynb").absolute()))
    practice.score("06_attention")
    assert [file.name for file in graded] == ["06_attention.ipynb", "my answers.ipynb"]


def test_colab_is_asked_for_the_notebook(graded, monkeypatch):
    shown = {"cells": [{"cell_type": "code", "source": "x = 1"}]}
    for name in ("google.colab", "google.colab._message"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    message = sys.modules["google.colab._message"]
    message.blocking_request = lambda *_, **options: {"ipynb": shown, **options}
    practice.score("06_attention")
    (file,) = graded
    assert json.loads(file.read_text()) == shown


def test_an_unknown_exercise_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        practice.start("13_unknown")


def test_what_follows_from_the_sources_is_up_to_date():
    assert importlib.util.find_spec("otter")
    check = [sys.executable, str(ROOT / ".ci" / "exercises.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def generator(tmp_path, monkeypatch):
    """The script of `make exercises`, for a copy of one exercise."""
    monkeypatch.syspath_prepend(ROOT / ".ci")
    path = ROOT / ".ci" / "exercises.py"
    spec = importlib.util.spec_from_file_location("exercises_script", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "BUNDLES", tmp_path / "bundles")
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    shutil.copytree(
        ROOT / "exercises" / "06_attention",
        tmp_path / "exercises" / "06_attention",
        ignore=shutil.ignore_patterns("tests", "*.ipynb"),
    )

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["exercises.py", *options])
        return script.main()

    return run


def test_files_follow_their_source(generator, tmp_path, capsys):
    source = tmp_path / "exercises" / "06_attention" / "source.py"
    assert generator("--check") == 1
    assert generator() == 0
    assert generator("--check") == 0
    tests = sorted(path.name for path in source.parent.glob("tests/*"))
    assert tests == ["q1.py", "q2.py", "q3.py", "q4.py"]

    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace("# 2 points", "# 3 points"), encoding="utf-8")
    (tmp_path / "bundles" / "07_gone.json").touch()
    capsys.readouterr()
    assert generator("--check") == 1
    named = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert str(Path("bundles", "07_gone.json")) in named
    assert str(Path("book", "exercises", "06_attention.md")) in named
    assert generator() == 0
    assert not (tmp_path / "bundles" / "07_gone.json").exists()
    assert generator("--check") == 0


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("# 2 points", "# two", "expected one line 'def"),
        ("difficulty=2", "difficulty=6", "difficulty is 1 to 5"),
        ("# BEGIN SOLUTION", "# SOLUTION", "no # BEGIN SOLUTION"),
        ("# %% [markdown] hint", "# %% [markdown] hunt", "expected given, helpers"),
        ("(masked_softmax):", "(masked_softmax, other):", r"takes \['other'\]"),
        ("def check_large_scores", "def check_random_masks", "more than one check"),
    ],
)
def test_a_source_that_is_wrong_is_told_where(old, new, said):
    path = ROOT / "exercises" / "06_attention" / "source.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(ValueError, match=f"exercises/06_attention/source.py: .*{said}"):
        Exercise.from_source("06_attention", text.replace(old, new, 1))


def test_a_broken_source_does_not_stop_the_others(generator, tmp_path, capsys):
    (tmp_path / "exercises" / "01_broken").mkdir()
    broken = tmp_path / "exercises" / "01_broken" / "source.py"
    broken.write_text("# %% [markdown]\n# no heading\n")
    assert generator() == 1
    assert "exercises/01_broken/source.py: 'no heading'" in capsys.readouterr().err
    assert (tmp_path / "bundles" / "06_attention.json").exists()


# What otter needs that Colab has, and a notebook of one's own may lack.
COLAB = ("dill", "ipywidgets", "nbconvert", "pandas", "PyYAML", "tinycss2", "wrapt")
# Stands for Colab in a kernel, and has the notebook that is on the screen.
PRETEND = """
import json, sys, types
for name in ("google.colab", "google.colab._message"):
    sys.modules[name] = types.ModuleType(name)
with open("06_attention.ipynb", encoding="utf-8") as file:
    shown = json.load(file)
message = sys.modules["google.colab._message"]
message.blocking_request = lambda *_, **options: {"ipynb": shown}
"""


@pytest.mark.slow
@pytest.mark.parametrize("colab", [True, False], ids=["in Colab", "elsewhere"])
def test_an_exercise_works_where_readers_open_it(tmp_path, colab):
    """The set-up cell on a machine that has torch but not us, then a question."""
    machine, commit = Machine(tmp_path), git("rev-parse", "HEAD").strip()
    machine.run("-m", "pip", "install", "--quiet", COLABS_PIP)
    for distribution in required(COLAB) if colab else ():
        for file in distribution.files:
            if (
                not file.is_relative_to("../")
                and not (machine.packages / file).exists()
            ):
                linked(INSTALLED / file, machine.packages / file)
    path = "exercises/06_attention/06_attention.ipynb"
    notebook = nbformat.reads(git("show", f"{commit}:{path}"), as_version=4)
    wanted = ("setup", "given1", "q4", "q4-check", "grade")
    cells = {cell.id: cell for cell in notebook.cells if cell.id in wanted}
    assert [*cells] == [*wanted]
    cells["q4"].source = ATTENTION_SOLUTION
    notebook.cells = [*cells.values()]
    nbformat.write(notebook, machine.work / "06_attention.ipynb")
    if colab:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(PRETEND))

    before = set(machine.run("-m", "pip", "list", "--format=freeze").split())
    torch_before = machine.files_of_torch()
    machine.execute(notebook, f"git+{ROOT.as_uri()}@{commit}")
    after = set(machine.run("-m", "pip", "list", "--format=freeze").split())
    assert before <= after  # nothing that was there has changed
    assert machine.files_of_torch() == torch_before

    said = {
        name: "".join(o.get("text") or o["data"]["text/plain"] for o in cell.outputs)
        for name, cell in cells.items()
    }
    assert "ERROR" not in said["setup"]
    assert "All test cases passed" in said["q4-check"]
    assert "Score so far: 2 of 13 points." in said["q4-check"]
    assert re.search(r"total +4 of 21", said["grade"])
