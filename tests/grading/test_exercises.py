"""Every check of every exercise: what it accepts, and what it says of a mistake."""

import ast
import functools
import importlib.util
import json
import re
from pathlib import Path

import nbformat
import needs
import pytest
import torch
import yaml

from seq2seq_lib.grading import submission
from seq2seq_lib.grading.checks import local, run_checks, student_error
from seq2seq_lib.grading.exercise import CELL, Exercise, exercises
from seq2seq_lib.grading.sandbox import Strength, strongest
from seq2seq_lib.grading.session import grade
from seq2seq_lib.grading.wire import MOST_NUMBERS

ROOT = Path(__file__).parents[2]
FILES = ("source.py", "correct.py", "wrong.py")
SOURCES = sorted(ROOT.glob("exercises/*/source.py"))
EXERCISES, BROKEN = {}, {}
for path in SOURCES:  # one that is being written spoils no other
    try:
        text = path.read_text(encoding="utf-8")
        EXERCISES[path.parent.name] = Exercise.from_source(path.parent.name, text)
    except ValueError as error:
        BROKEN[path.parent.name] = str(error)
SECRETS = ("public", "spring", "autumn")
FOLDERS = [path.parent for path in SOURCES if path.parent.name in EXERCISES]


def test_every_exercise_is_complete():
    assert BROKEN == {}
    assert [
        f / name for f in FOLDERS for name in FILES if not (f / name).exists()
    ] == []


def answers(kind):
    """The cells of correct.py or wrong.py: exercise, question, name, message, code."""
    found = []
    for path in (folder / f"{kind}.py" for folder in FOLDERS):
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        folder = path.parent
        imports, *parts = CELL.split(text)
        for header, body in zip(parts[::2], parts[1::2], strict=True):
            question, _, name = header.strip().partition(" ")
            said = [line[2:] for line in body.splitlines() if line.startswith("# ")]
            code = f"{imports}\n{body}"
            found.append(
                pytest.param(
                    folder.name,
                    question,
                    " ".join(said),
                    code,
                    id=f"{folder.name}-{question}-{name.replace(' ', '-')}",
                )
            )
    return found


@functools.cache
def judged(name, code="", *, stubs=False, secret="public"):
    """The outcomes of the solutions, or the stubs, with some code run after them."""
    exercise = EXERCISES[name]
    namespace = {}
    parts = [q.stub if stubs else q.solution for q in exercise.questions]
    for part in (*exercise.given, *parts, code, *exercise.given):
        exec(compile(part, name, "exec"), namespace)
    return run_checks(exercise, local(namespace), secret=secret)


@pytest.mark.parametrize("name", EXERCISES)
def test_the_stub_scores_nothing(name):
    outcomes = judged(name, stubs=True)
    assert sum(o.earned for o in outcomes) == 0
    assert {o.message.partition("`")[2].partition("`")[2] for o in outcomes} == {
        " is not written yet."
    }


@pytest.mark.parametrize("name", EXERCISES)
@pytest.mark.parametrize("secret", SECRETS)
def test_the_solution_scores_full_marks(name, secret):
    outcomes = judged(name, secret=secret)
    assert [o for o in outcomes if not o.passed] == []


@pytest.mark.parametrize("name, question, said, code", answers("correct"))
def test_another_right_answer_scores_full_marks(name, question, said, code):
    for secret in SECRETS:
        assert [o for o in judged(name, code, secret=secret) if not o.passed] == []


@pytest.mark.parametrize("name, question, said, code", answers("wrong"))
def test_a_mistake_is_named_and_costs_its_own_question_only(name, question, said, code):
    assert said
    for secret in SECRETS:
        lost = [o for o in judged(name, code, secret=secret) if not o.passed]
        assert lost
        assert said in lost[0].message
        assert {outcome.question for outcome in lost} == {question}
        if not lost[0].hidden:
            break  # no secret decides about it


@pytest.mark.parametrize("name", EXERCISES)
def test_no_two_mistakes_are_told_the_same(name):
    first = {}
    for parameters in answers("wrong"):
        exercise, *_, code = parameters.values
        if exercise == name:
            (message, *_) = (o.message for o in judged(name, code) if not o.passed)
            assert message not in first, (first[message], parameters.id)
            first[message] = parameters.id
    assert len(first) >= 10


def refusing(*_):
    raise student_error("f", "ValueError", "whatever it was")


def first_tensor(change):
    """A function that changes the first tensor that it is given, or returns 0."""
    return lambda *given: next((change(x) for x in given if torch.is_tensor(x)), 0)


# Answers that need no thought; those that are no data of any sense come last.
THOUGHTLESS = {
    "the first argument": lambda *given: given[0],
    "the second argument": lambda *given: given[min(1, len(given) - 1)],
    "the last argument": lambda *given: given[-1],
    "zeros": first_tensor(torch.zeros_like),
    "ones": first_tensor(torch.ones_like),
    "always an error": refusing,
    "none": lambda *_: None,
    "zero": lambda *_: 0.0,
    "one": lambda *_: 1,
    "true": lambda *_: True,
    "an empty list": lambda *_: [],
    "no number": lambda *_: torch.nan,
    "a huge number": lambda *_: 2**62,
    "huge numbers": lambda *_: (torch.full((2, 3), 2**62), [2**62]),
    "a long list": lambda *_: [0] * 100_000,
    "a long tensor": lambda *_: torch.zeros(MOST_NUMBERS),
    "an empty tensor": lambda *_: torch.empty(0, 1 << 20, 1 << 20),
}


@pytest.mark.filterwarnings("ignore")  # of torch, on numbers without sense
@pytest.mark.parametrize("answer", THOUGHTLESS.values(), ids=THOUGHTLESS)
@pytest.mark.parametrize("name", EXERCISES)
def test_an_answer_without_thought_scores_nothing(name, answer):
    outcomes = run_checks(EXERCISES[name], lambda _: answer)
    assert [o for o in outcomes if o.passed] == []


@pytest.mark.parametrize("name", EXERCISES)
def test_questions_are_of_a_size(name):
    exercise = EXERCISES[name]
    assert 3 <= len(exercise.questions) <= 6
    for question in exercise.questions:
        assert question.text.startswith("**Goal.**")
        assert 5 <= question.minutes <= 60
        asked = {n for n in question.functions if f"def {n}" in question.stub}
        assert asked, "a question asks for a function"
        for function in ast.parse(question.stub).body:
            if isinstance(function, ast.FunctionDef):
                arguments = function.args.args + function.args.kwonlyargs
                assert function.returns
                assert all(argument.annotation for argument in arguments)


def chapters():
    """The exercises whose chapters are in the book, with what the contents say."""
    contents = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text(encoding="utf-8"))
    entries = [entry for part in contents["parts"] for entry in part["chapters"]]
    return {e["file"]: e.get("sections", []) for e in entries if e["file"] in EXERCISES}


@pytest.mark.parametrize("name", chapters())
def test_a_chapter_and_its_exercise_link_to_each_other(name):
    assert {"file": f"exercises/{name}"} in chapters()[name]
    chapter = (ROOT / "book" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert f"](exercises/{name}.md)" in chapter
    page = (ROOT / "book" / "exercises" / f"{name}.md").read_text(encoding="utf-8")
    assert f"](../{name}.ipynb)" in page


@pytest.mark.parametrize("name", chapters())
def test_what_to_read_again_exists(name):
    for question in EXERCISES[name].questions:
        page, _, anchor = question.section(name, "ipynb").partition("#")
        notebook = nbformat.read(ROOT / "book" / page, as_version=4)
        text = "\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")
        titles = re.findall(r"(?m)^#{2,3} (.*)$", text)
        plain = (re.sub(r"[^\w\- ]", "", title).lower() for title in titles)
        assert anchor in {title.replace(" ", "-") for title in plain}


def test_solutions_can_be_left_out_of_the_book():
    path = ROOT / "book" / "_extensions" / "solutions.py"
    spec = importlib.util.spec_from_file_location("solutions", path)
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    page = (ROOT / "book" / "exercises" / "06_attention.md").read_text(encoding="utf-8")
    source = [page]
    extension.leave_out(None, "exercises/06_attention", source)
    assert "masked_fill(~mask, -torch.inf)" in page
    assert "masked_fill(~mask, -torch.inf)" not in source[0]
    assert source[0].count("<summary>Hint") == 8
    assert source[0].count("raise NotImplementedError") == 4


@pytest.mark.parametrize("name", EXERCISES)
def test_the_notebook_with_solutions_scores_full_marks_in_a_box(name, tmp_path):
    needs.sandbox(Strength.BUBBLEWRAP, Strength.USER)
    exercise = EXERCISES[name]
    path = ROOT / "exercises" / name / f"{name}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    solutions = {question.name: question.solution for question in exercise.questions}
    for cell in notebook["cells"]:
        cell["source"] = solutions.get(cell["id"], cell["source"])
    (tmp_path / "renamed.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    read = submission.read(tmp_path / "renamed.ipynb", "Ada")
    assert submission.exercise_of(read, exercises()).name == name
    graded = grade(read, exercise, strength=strongest())
    assert [o for o in graded.outcomes if not o.passed] == []
    assert graded.notes == []
