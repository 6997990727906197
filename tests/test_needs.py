"""What a machine lacks is skipped with a command that brings it, or fails."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LACKING = """
import needs
import pytest

@pytest.mark.parametrize("n", range(2))
def test_corpus(n):
    needs.corpus("pronalsyl")

def test_browser():
    needs.browser()

def test_sandbox():
    needs.sandbox()

def test_package():
    needs.package("json", "no_such_package")

def test_network():
    needs.lacking("the network", "nothing answers")

def test_toolkit():
    needs.lacking("another toolkit", "no joeynmt")

@needs.system(False, "never suits")
def test_system():
    raise AssertionError

def test_there():
    needs.corpus("toy-copy")
    needs.package("json")
"""


@pytest.fixture
def machine(tmp_path):
    """Runs tests where there is neither corpus nor browser nor sandbox."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_lacking.py").write_text(LACKING, encoding="utf-8")
    (tests / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "needs", "-p", "xdist.plugin"]

    def run(*options, **variables):
        environment = {k: v for k, v in os.environ.items() if "SEQ2SEQ" not in k}
        empty = {k: str(tmp_path / "none") for k in ("PATH", "XDG_CACHE_HOME", "HOME")}
        environment |= {"PYTHONPATH": str(TESTS), **empty, **variables}
        environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take seconds
        done = subprocess.run(
            [*command, *options],
            cwd=tests,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    return run


def counted(output):
    """How many tests had which outcome, as the last line of pytest says."""
    last = output.strip().splitlines()[-1]
    return {outcome: int(n) for n, outcome in re.findall(r"(\d+) ([a-z]+)", last)}


def test_what_is_skipped_is_summed_up(machine, tmp_path):
    output = machine("-n", "1", SEQ2SEQ_MUST_RUN="0")
    assert counted(output).items() >= {"skipped": 8, "passed": 1}.items()
    note = tmp_path / "tests" / ".pytest_cache" / "d" / "skipped" / "summary"
    lines = note.read_text("utf-8").splitlines()
    assert lines[0] == "skipped, needs a corpus: make data: 2 tests"
    assert "skipped, needs another toolkit: make bench-peers: 1 tests" in lines
    assert lines[-1] == "skipped for other reasons (see pytest -rs): 1 tests"
    assert len(lines) == 7  # each need, and all other reasons
    assert "\n".join(lines) in output


def test_nothing_is_skipped_where_all_must_run(machine):
    output = machine(SEQ2SEQ_MUST_RUN="1")
    assert counted(output).items() >= {"failed": 6, "skipped": 2}.items()
    assert "g014b2b.train is not in SEQ2SEQ_DATA, nor cached): make data" in output


def test_a_browser_is_found(machine, tmp_path):
    program = tmp_path / "none" / "google-chrome"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert counted(machine("-k", "browser"))["passed"] == 1


def test_no_test_is_skipped_in_another_way():
    ways = re.compile(r"pytest\.skip|mark\.skip|importorskip|SkipTest")
    texts = {path.name: path.read_text("utf-8") for path in TESTS.rglob("*.py")}
    skipping = {name for name, text in texts.items() if ways.search(text)}
    assert skipping == {"needs.py", "test_needs.py"}
