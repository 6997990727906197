"""Every check of every exercise: what it accepts, and what it says of a mistake."""

from pathlib import Path

import pytest

from seq2seq_lib.grading.checks import local, run_checks
from seq2seq_lib.grading.exercise import CELL, Exercise

ROOT = Path(__file__).parent.parent
FOLDERS = sorted(path.parent for path in ROOT.glob("exercises/*/source.py"))
EXERCISES = {
    folder.name: Exercise.from_source(
        folder.name, (folder / "source.py").read_text(encoding="utf-8")
    )
    for folder in FOLDERS
}


def answers(kind):
    """The cells of correct.py or wrong.py: exercise, question, name, message, code."""
    found = []
    for folder in FOLDERS:
        text = (folder / f"{kind}.py").read_text(encoding="utf-8")
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
@pytest.mark.parametrize("secret", ["public", "spring", "autumn"])
def test_the_solution_scores_full_marks(name, secret):
    outcomes = judged(name, secret=secret)
    assert [o for o in outcomes if not o.passed] == []


@pytest.mark.parametrize("name, question, said, code", answers("correct"))
def test_another_right_answer_scores_full_marks(name, question, said, code):
    assert [o for o in judged(name, code) if not o.passed] == []


@pytest.mark.parametrize("name, question, said, code", answers("wrong"))
def test_a_mistake_is_named_and_costs_its_own_question_only(name, question, said, code):
    lost = [outcome for outcome in judged(name, code) if not outcome.passed]
    assert lost
    assert said
    assert said in lost[0].message
    assert {outcome.question for outcome in lost} == {question}


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


@pytest.mark.parametrize("name", EXERCISES)
def test_questions_are_of_a_size(name):
    exercise = EXERCISES[name]
    assert 3 <= len(exercise.questions) <= 6
    for question in exercise.questions:
        assert question.text.startswith("**Goal.**")
        assert 5 <= question.minutes <= 60
        asked = {n for n in question.functions if f"def {n}" in question.stub}
        assert asked, "a question asks for a function"
