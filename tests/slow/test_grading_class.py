"""A whole class: two hundred submissions, and a grader that is killed half-way."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seq2seq_lib.grading.exercise import Exercise

ROOT = Path(__file__).parents[2]
NAME = "06_attention"
SOURCE = (ROOT / "exercises" / NAME / "source.py").read_text(encoding="utf-8")
STUDENTS = int(os.environ.get("SEQ2SEQ_CLASS", "200"))
LOOP = "while True:\n    pass"


def notebook(student, *, questions=(), before=""):
    """The student's notebook with the solutions of some questions written in."""
    path = ROOT / "exercises" / NAME / f"{NAME}.ipynb"
    made = json.loads(path.read_text(encoding="utf-8"))
    solutions = {
        q.name: q.solution for q in Exercise.from_source(NAME, SOURCE).questions
    }
    for cell in made["cells"]:
        if cell["id"] in questions:
            cell["source"] = solutions[cell["id"]]
    extra = {"cell_type": "code", "metadata": {}, "source": f"# {student}\n{before}"}
    made["cells"].insert(2, extra)
    return json.dumps(made)


# Kinds of submissions: what is in the file, and the points it deserves.
KINDS = [
    (lambda s: notebook(s, questions=("q1", "q2", "q3", "q4")), "21"),
    (lambda s: notebook(s, questions=("q1", "q4")), "10"),
    (notebook, "0"),
    (lambda s: f"{s} is not JSON", ""),
    (lambda s: notebook(s, questions=("q2",), before="import os\nos._exit(1)"), "6"),
    (lambda s: notebook(s, questions=("q3",), before="1 / 0"), "5"),
]


def below(process):
    """The processes that a process started, and those that they started."""
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        for child in path.read_text().split():
            yield child
            yield from below(child)


def alive(process):
    """Whether a process runs; one that has ended may wait for its parent to notice."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow
@pytest.mark.usefixtures("sandbox")
def test_every_submission_is_accounted_for_although_the_grader_is_killed(tmp_path):
    folder, kept = tmp_path / "submissions", tmp_path / "cache"
    folder.mkdir()
    expected = {}
    for number in range(STUDENTS):
        student = f"student{number:03}"
        make, points = KINDS[number % len(KINDS)]
        (folder / f"{student}.ipynb").write_text(make(student), encoding="utf-8")
        expected[student] = points
    command = [sys.executable, "-m", "seq2seq_lib", "grade", str(folder)]
    command += ["--csv", str(tmp_path / "grades.csv"), "--jobs", "2"]
    environment = os.environ | {"XDG_CACHE_HOME": str(kept)}

    def done():
        return list(kept.rglob("graded/*.json"))

    first = subprocess.Popen(
        command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 3600
    while len(done()) < STUDENTS * 5 // 12 and time.monotonic() < deadline:
        assert first.poll() is None
        time.sleep(0.2)
    started = list(below(first.pid))
    first.kill()
    assert first.wait() == -signal.SIGKILL
    before = {path: path.stat().st_mtime_ns for path in done()}
    assert STUDENTS // 3 < len(before) < STUDENTS * 5 // 6
    assert not (tmp_path / "grades.csv").exists()
    assert started
    deadline = time.monotonic() + 60
    while any(map(alive, started)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [process for process in started if alive(process)] == []

    second = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert second.returncode == 1  # some were no notebooks
    after = {path: path.stat().st_mtime_ns for path in done()}
    assert before.items() <= after.items()  # nothing was graded twice
    with (tmp_path / "grades.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["student"]: row["earned"] for row in rows} == expected
    assert all(row["earned"] or "refused" in row["problem"] for row in rows)
