"""Many submissions, and what comes out: a table, JSON, a page, a spreadsheet."""

import csv
import io
import json
import subprocess
import sys
import zipfile

import needs
import pytest
from bs4 import BeautifulSoup

from seq2seq_lib.cli import main
from seq2seq_lib.grading import batch, report
from seq2seq_lib.grading.batch import Result, Settings, find, grade_all
from seq2seq_lib.grading.checks import Outcome
from seq2seq_lib.grading.exercise import exercises
from seq2seq_lib.grading.sandbox import NotStartedError, Strength
from seq2seq_lib.grading.session import Graded

NAME = "06_attention"


def notebook(text="def attention(): ..."):
    cell = {"cell_type": "code", "metadata": {}, "source": text}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4})


def outcome_of(*wrong):
    """What a submission gets whose answers to these questions are wrong."""
    exercise = exercises()[NAME]
    return Graded(
        NAME,
        [
            Outcome(
                question.name,
                check.name,
                check.points,
                question.name not in wrong,
                check.hidden,
                f"Wrong <b>{question.name}</b>." if question.name in wrong else "",
            )
            for question in exercise.questions
            for check in exercise.checks(question)
        ],
        [],
        Strength.BUBBLEWRAP,
    )


@pytest.fixture
def calls(monkeypatch):
    """Grading without a box: a submission may say what shall come of it."""
    graded = []

    def grade(read, exercise, **options):
        graded.append(read.student)
        text = "".join(read.cells)
        if "not started" in text:
            raise NotStartedError("busy")
        if "bug" in text:
            raise ZeroDivisionError("of our own")
        return outcome_of(*(q for q in ("q1", "q2", "q4") if q in text))

    monkeypatch.setattr(batch, "grade", grade)
    return graded


@pytest.fixture
def folder(tmp_path):
    files = {
        "ada.ipynb": notebook(),
        "bob/homework.ipynb": notebook("def attention(): q1"),
        "bob/.ipynb_checkpoints/homework.ipynb": notebook(),
        "carl/deep/er/x.ipynb": notebook("def attention(): q1, q2"),
        "=dora.ipynb": notebook("def attention(): bug"),
        "eve.ipynb": "not JSON",
        "fred.ipynb": notebook("def attention(): 'not started'"),
        "readme.txt": "nothing to grade",
    }
    for name, text in files.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    return tmp_path / "in"


STUDENTS = ["=dora", "ada", "bob", "carl", "eve", "fred"]


def settings(**changes):
    return Settings(strength=Strength.BUBBLEWRAP, **changes)


def test_students_are_named_by_file_or_folder(folder):
    assert [student for _, student in find([folder])] == STUDENTS
    assert find([folder / "ada.ipynb"]) == [(folder / "ada.ipynb", "ada")]
    with pytest.raises(ValueError, match="does not exist"):
        find([folder / "none"])
    (folder / "empty").mkdir()
    with pytest.raises(ValueError, match="holds no notebook"):
        find([folder / "empty"])


def test_what_cannot_be_graded_is_accounted_for(folder, calls, tmp_path):
    (folder / "gina").mkdir()
    (folder / "gina" / "answers.pdf").touch()
    (folder / "hans").symlink_to(tmp_path)
    (folder / "ida.ipynb").symlink_to(folder / "bob", target_is_directory=True)
    for name in ("jo.ipynb.txt", "KAI.IPYNB", "lea/x.ipynb (1)", "mia.ipynb.json"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(notebook())
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "._ada.ipynb").touch()
    results = {r.student: r for r in grade_all(find([folder]), settings())}
    more = ["gina", "hans", "ida", "jo", "KAI", "lea", "mia"]
    assert sorted(results) == sorted(STUDENTS + more)
    assert "a folder without a notebook" in results["gina"].problem
    for student in ("hans", "ida"):
        assert "a symbolic link" in results[student].problem
    assert all(results[s].graded.earned == 21 for s in ("jo", "KAI", "lea", "mia"))


def test_one_bad_submission_never_stops_the_rest(folder, calls):
    told = []
    results = grade_all(find([folder]), settings(), jobs=2, report=told.append)
    assert [result.student for result in results] == STUDENTS
    assert sorted(map(str, told)) == sorted(map(str, results))
    problems = {r.student: r.problem for r in results if r.problem}
    assert problems.keys() == {"=dora", "eve", "fred"}
    assert "our fault: ZeroDivisionError" in problems["=dora"]
    assert problems["eve"].startswith("refused: it is not a notebook")
    assert "our fault: NotStartedError: busy" in problems["fred"]
    assert [r.graded.earned for r in results if r.graded] == [21, 15, 9]


def test_what_was_graded_is_kept_by_its_content(folder, calls, tmp_path):
    def again(**changes):
        calls.clear()
        kept = {"kept": tmp_path / "kept"} | changes
        return grade_all(find([folder]), settings(**kept))

    first = again()
    assert len(calls) == 5
    assert again() == first
    assert sorted(calls) == ["=dora", "fred"]  # what failed is tried again
    (folder / "ada.ipynb").write_text(notebook("def attention(): q4"))
    assert again()[1].graded.earned == 17
    assert "ada" in calls
    again(secret="another")
    assert len(calls) == 5


def test_further_hidden_checks_come_from_a_folder(folder, calls, tmp_path):
    (tmp_path / f"{NAME}.py").write_text("# %% hidden q9\n")
    with pytest.raises(ValueError, match=r"has no \['q9'\]"):
        grade_all(find([folder]), settings(hidden=tmp_path))
    text = "# %% hidden q1\ndef check_more(masked_softmax):  # 3 points\n    pass\n"
    (tmp_path / f"{NAME}.py").write_text(text)
    extra = settings(hidden=tmp_path).extra_for(exercises()[NAME])
    exercise = exercises()[NAME]
    added = exercise.checks(exercise.questions[0], extra=extra["q1"])[-1]
    assert (added.name, added.points, added.hidden) == ("check_more", 3, True)


RESULTS = [
    Result("ada", "a.ipynb", outcome_of()),
    Result("<i>bob", "b.ipynb", outcome_of("q1", "q4")),
    Result("=carl", "c.ipynb", outcome_of("q1")),
    Result("eve", "e.ipynb", problem="refused: it is <empty>."),
]


def test_the_table_says_what_to_read_again():
    text = report.table(RESULTS[1])
    assert "q1  Masked softmax                     0 of 6\n      Wrong" in text
    assert "06_attention.html#masks-positions-that-get-no-weight" in text
    assert "q2  Scaled dot-product attention       6 of 6\n  q3" in text
    assert "11 of 21" in text
    assert "graded in a sandbox" in text
    assert "refused: it is <empty>." in report.table(RESULTS[3])


def test_gradescope_gets_a_score_and_every_check():
    made = json.loads(json.dumps(report.gradescope(RESULTS[1:2])))
    assert made["score"] == 11
    assert sum(test["max_score"] for test in made["tests"]) == 21
    assert sum(test["score"] for test in made["tests"]) == 11
    assert {test["visibility"] for test in made["tests"]} == {
        "visible",
        "after_published",
    }
    hidden, *_ = (t for t in made["tests"] if t["visibility"] == "after_published")
    assert "Wrong" in hidden["output"]
    assert "Read again: http" in hidden["output"]
    # what is shown at once, above the checks, tells nothing of hidden ones
    assert "Wrong" not in made["output"]
    assert " of " not in made["output"]
    assert "graded in a sandbox" in made["output"]
    assert report.gradescope(RESULTS)["score"] == 21  # the best of one exercise
    refused = report.gradescope(RESULTS[3:])
    assert refused["score"] == 0
    assert refused["tests"][0]["output"] == "refused: it is <empty>."


def test_the_page_shows_what_students_wrote_as_text():
    page = BeautifulSoup(report.page(RESULTS), "html.parser")
    assert [h.text for h in page("h2")] == [
        "ada: 21 of 21 points",
        "<i>bob: 11 of 21 points",
        "=carl: 15 of 21 points",
        "eve",
    ]
    assert not page("b")
    assert not page("i")
    assert "Wrong <b>q1</b>." in page.text
    assert len(page("a")) == 3  # what to read again


def test_the_spreadsheet_has_a_row_for_each_and_no_formula():
    rows = list(csv.DictReader(io.StringIO(report.grades(RESULTS))))
    assert [row["student"] for row in rows] == ["ada", "<i>bob", "'=carl", "eve"]
    assert [row["earned"] for row in rows] == ["21", "11", "15", ""]
    assert [row["q4"] for row in rows] == ["4", "0", "4", ""]
    assert rows[3]["problem"] == "refused: it is <empty>."
    for name in (" =1+1", "\n-2", chr(0xFF1D) + "cmd"):
        (row,) = csv.DictReader(io.StringIO(report.grades([Result(name, "x", None)])))
        assert row["student"] == f"'{name}"


def test_statistics_count_each_question():
    rows = list(csv.DictReader(io.StringIO(report.statistics_csv(RESULTS))))
    assert [row["question"] for row in rows] == ["q1", "q2", "q3", "q4"]
    first, last = rows[0], rows[3]
    assert (first["submissions"], first["mean"], first["full"], first["none"]) == (
        "3",
        "2.0",
        "1",
        "2",
    )
    assert (first["most frequent mistake"], first["times"]) == ("Wrong <b>q1</b>.", "2")
    assert (last["mean"], last["full"]) == ("2.67", "2")


def test_the_command_writes_everything(folder, calls, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    written = {kind: tmp_path / f"out.{kind}" for kind in ("json", "html", "csv")}
    options = [f"--{kind}={path}" for kind, path in written.items()]
    assert main(["grade", str(folder), *options]) == 1  # some were not graded
    assert json.loads(written["json"].read_text())["score"] == 21  # the best one
    assert "<h2>carl: 9 of 21 points</h2>" in written["html"].read_text()
    assert len(written["csv"].read_text().splitlines()) == 7
    assert (tmp_path / "out_questions.csv").exists()
    said = capsys.readouterr().err
    assert "6/6 " in said
    assert "ada: 06_attention 21 of 21" in said

    assert main(["grade", str(folder / "ada.ipynb")]) == 0
    assert "q1  Masked softmax" in capsys.readouterr().out
    assert main(["grade", str(folder), "--exercise", "x"]) == 2
    assert "expected one of" in capsys.readouterr().err
    (tmp_path / "empty").touch()
    assert main(["grade", str(folder), "--secret", str(tmp_path / "empty")]) == 2
    assert "is empty" in capsys.readouterr().err


@needs.system(sys.platform != "win32", "Gradescope runs Linux")
def test_the_autograder_of_gradescope(tmp_path, monkeypatch):
    (tmp_path / "secret").write_text("of the class\n")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / f"{NAME}.py").write_text("# %% hidden q1\n")
    options = [f"--{name}={tmp_path / name}" for name in ("secret", "hidden")]
    command = ["autograder", str(tmp_path / "a.zip"), *options]
    assert main([*command, "--exercise", "x"]) == 2
    assert main([*command, "--exercise", NAME]) == 0
    place = tmp_path / "autograder"
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        packed.extractall(place / "source")
    assert "bubblewrap" in (place / "source" / "setup.sh").read_text()
    # as Gradescope runs it, with a stand-in that shows how it is called
    (tmp_path / "seq2seq").write_text('#!/bin/sh\necho "$SEQ2SEQ_SECRET" "$@"\n')
    (tmp_path / "seq2seq").chmod(0o755)
    monkeypatch.setenv("AUTOGRADER", str(place))
    monkeypatch.setenv("SEQ2SEQ", str(tmp_path / "seq2seq"))
    run = subprocess.run(
        ["bash", str(place / "source" / "run_autograder")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == (
        "of the class grade submission --hidden source/hidden "
        f"--json results/results.json --exercise {NAME}\n"
    )
