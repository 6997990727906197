"""Instant feedback: otter itself with our checks, on right and wrong answers."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from seq2seq_lib.grading import practice
from seq2seq_lib.grading.exercise import exercises

pytestmark = pytest.mark.filterwarnings("ignore")  # otter's own
ROOT = Path(__file__).parent.parent
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


@pytest.mark.skipif(sys.platform == "win32", reason="otter reads no UTF-8 there")
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


def test_an_unknown_exercise_is_refused():
    with pytest.raises(ValueError, match="expected one of"):
        practice.start("13_unknown")


def test_what_follows_from_the_sources_is_up_to_date():
    assert importlib.util.find_spec("otter")
    check = [sys.executable, str(ROOT / ".ci" / "exercises.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
