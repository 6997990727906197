"""The chapters where readers open them: a new machine that has torch but not us."""

import importlib.metadata
import json
import subprocess
from pathlib import Path

import nbformat
import needs
import pytest
from fresh_machine import (
    COLABS_PIP,
    Machine,
    git,
)
from pages import notebooks, page_name

ROOT = Path(__file__).parents[2]
CHAPTERS = [page_name(path) for path in notebooks()]
QUICK = ("01_sequences", "02_encoder_decoder")


@pytest.fixture(scope="module")
def commit():
    """What is under test, the notebooks and the library that they install."""
    if not (ROOT / ".git").exists():
        needs.lacking("the network", "this is no clone of a git repository")
    return git("rev-parse", "HEAD").strip()


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    machine = Machine(tmp_path_factory.mktemp("colab"))
    command = [machine.python, "-m", "pip", "install", "--quiet", COLABS_PIP]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        needs.lacking("the network", "pip finds no packages")
    return machine


def chapter(name, commit):
    """A notebook as the commit has it."""
    text = git("show", f"{commit}:book/{name}.ipynb")
    return nbformat.reads(text, as_version=4)


def setup_cell(notebook):
    (cell,) = (c for c in notebook.cells if "setup" in c.metadata.get("tags", ()))
    return cell


@pytest.fixture(scope="module")
def equipped(machine, commit):
    """The machine after a notebook's set-up cell, and torch's files before it."""
    before = machine.files_of_torch()
    assert machine.run("-m", "pip", "list").count("seq2seq") == 0
    notebook = chapter(QUICK[0], commit)
    notebook.cells = [
        c for c in notebook.cells if "setup" in c.metadata.get("tags", ())
    ]
    notebook = machine.execute(notebook, f"git+{ROOT.as_uri()}@{commit}")
    # A failure of pip stops no notebook: it is only printed.
    printed = "".join(output.text for output in notebook.cells[0].outputs)
    assert "ERROR" not in printed, printed
    return machine, before


def test_the_set_up_cell_installs_the_library_and_leaves_torch_alone(equipped, commit):
    machine, before = equipped
    assert len(before) > 1000
    assert machine.files_of_torch() == before
    ask = """\
import importlib.metadata, torch, seq2seq_lib
origin = importlib.metadata.distribution("seq2seq_lib").read_text("direct_url.json")
print(torch.__version__, seq2seq_lib.__file__, origin)"""
    version, file, origin = machine.run("-c", ask).split(maxsplit=2)
    assert version == importlib.metadata.version("torch")
    assert Path(file).is_relative_to(machine.packages)
    assert json.loads(origin)["vcs_info"]["commit_id"] == commit
    machine.run("-m", "pip", "check")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in CHAPTERS
    ],
)
def test_a_chapter_runs_without_the_repository(equipped, commit, name):
    machine, _ = equipped
    notebook = machine.execute(chapter(name, commit), source="nowhere")
    assert (
        setup_cell(notebook).outputs == []
    )  # the library is there, and not installed again
