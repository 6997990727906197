"""What comes out of grading: a table, Gradescope's JSON, a page, and a spreadsheet."""

import csv
import html
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import metadata
from typing import Any

from seq2seq_lib.grading.batch import Result
from seq2seq_lib.grading.checks import Outcome
from seq2seq_lib.grading.exercise import Question, exercises
from seq2seq_lib.grading.session import Graded

QUESTIONS = 6
# What spreadsheets take for the beginning of a formula, also as wide characters.
FORMULA = set("=+-@") | {chr(0xFF1D), chr(0xFF0B), chr(0xFF0D), chr(0xFF20)}
STYLE = """
body { font-family: system-ui, sans-serif; line-height: 1.5; margin: 2rem auto;
  max-width: 48rem; padding: 0 1rem; color: #1f2328; background: #fff; }
table { border-collapse: collapse; width: 100%; margin: 0.5rem 0 1.5rem; }
th, td { border-bottom: 1px solid #d0d7de; padding: 0.3rem 0.6rem; text-align: left;
  overflow-wrap: anywhere;
  vertical-align: top; }
.passed { color: #116329; } .failed { color: #a40e26; }
@media (prefers-color-scheme: dark) {
  body { color: #e6edf3; background: #0d1117; } a { color: #79c0ff; }
  .passed { color: #7ee787; } .failed { color: #ffa198; } }
"""


def by_question(graded: Graded) -> Iterator[tuple[Question, list[Outcome]]]:
    """The questions of an exercise with the outcomes of their checks."""
    for question in exercises()[graded.exercise].questions:
        outcomes = [o for o in graded.outcomes if o.question == question.name]
        yield question, outcomes


def points(outcomes: Iterable[Outcome]) -> str:
    """How many points of how many."""
    outcomes = list(outcomes)
    earned, there = sum(o.earned for o in outcomes), sum(o.points for o in outcomes)
    return f"{earned} of {there}"


def first_message(outcomes: Iterable[Outcome]) -> str:
    """What the first failing check says."""
    return next((o.message for o in outcomes if not o.passed), "")


def table(result: Result) -> str:
    """A score table for a terminal."""
    if result.graded is None:
        return f"{result.file}\n  {result.problem}\n"
    graded = result.graded
    lines = [f"{result.file} · {graded.exercise}"]
    for question, outcomes in by_question(graded):
        score = points(outcomes)
        lines.append(f"  {question.name}  {question.title:<32} {score:>8}")
        if message := first_message(outcomes):
            lines.append(f"      {message.replace(chr(10), chr(10) + ' ' * 6)}")
            lines.append(f"      Read again: {address(graded.exercise, question)}")
    lines.append(f"  {'total':<36} {points(graded.outcomes):>8}")
    lines += [f"  {note}" for note in graded.notes]
    lines.append(f"  ({graded.strength.meaning})")
    return "\n".join(lines) + "\n"


def line(result: Result) -> str:
    """One line about a submission."""
    if result.graded is None:
        return f"{result.student}: {result.problem}"
    return (
        f"{result.student}: {result.graded.exercise} {points(result.graded.outcomes)}"
    )


def address(exercise: str, question: Question) -> str:
    """The section of the book that explains a question."""
    book = "https://example.org/"
    for entry in metadata("seq2seq_lib").get_all("Project-URL") or []:
        name, _, url = entry.partition(", ")
        if name == "Homepage":
            book = url
    return f"{book.rstrip('/')}/{question.section(exercise, 'html')}"


def gradescope(results: Sequence[Result]) -> dict[str, Any]:
    """What Gradescope reads: a score, and every check.

    What it shows above the checks is seen at once, and says nothing of hidden ones.
    """
    several = len(results) > 1
    tests = []
    for result in results:
        before = f"{result.student} · " if several else ""
        if result.graded is None:
            tests.append({"name": f"{before}grading", "score": 0, "max_score": 0})
            tests[-1]["output"] = result.problem
            continue
        for question, outcomes in by_question(result.graded):
            for outcome in outcomes:
                name = outcome.check.removeprefix("check_").replace("_", " ")
                again = f"Read again: {address(result.graded.exercise, question)}"
                tests.append(
                    {
                        "name": f"{before}{question.name} {question.title}: {name}",
                        "score": outcome.earned,
                        "max_score": outcome.points,
                        "status": "passed" if outcome.passed else "failed",
                        "output": ""
                        if outcome.passed
                        else f"{outcome.message}\n{again}",
                        "visibility": "after_published"
                        if outcome.hidden
                        else "visible",
                    }
                )
    return {
        "score": sum(_best(results).values()),
        "output": "\n".join(map(_summary, results)),
        "tests": tests,
    }


def _best(results: Iterable[Result]) -> dict[str, int]:
    """The most points for each exercise, so that no copy counts twice."""
    best: dict[str, int] = {}
    for result in results:
        if (graded := result.graded) is not None:
            best[graded.exercise] = max(graded.earned, best.get(graded.exercise, 0))
    return best


def _summary(result: Result) -> str:
    """A submission without its checks."""
    if result.graded is None:
        return table(result)
    graded = result.graded
    lines = [f"{result.file} · {graded.exercise}", *graded.notes]
    return "\n".join([*lines, f"({graded.strength.meaning})"]) + "\n"


def page(results: Sequence[Result]) -> str:
    """A page that says what passed, what failed, and what to read again."""
    parts = "\n".join(_section(result) for result in results)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>Exercises</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>Exercises</h1>\n{parts}\n</main>\n</body>\n</html>\n"
    )


def _section(result: Result) -> str:
    file, student = html.escape(result.file), html.escape(result.student)
    if result.graded is None:
        return (
            f'<h2>{student}</h2>\n<p>{file}</p>\n<p class="failed">'
            f"{html.escape(result.problem)}</p>"
        )
    graded = result.graded
    exercise = html.escape(exercises()[graded.exercise].title)
    parts = [
        f"<h2>{student}: {points(graded.outcomes)} points</h2>",
        f"<p>{file} · {exercise} · {html.escape(graded.strength.meaning)}</p>",
    ]
    for question, outcomes in by_question(graded):
        rows = "\n".join(map(_row, outcomes))
        title = f"{question.name} {html.escape(question.title)}"
        parts.append(
            f"<h3>{title}: {points(outcomes)}</h3>"
            '\n<table>\n<tr><th scope="col">check</th><th scope="col">points</th>'
            f'<th scope="col">what it says</th></tr>\n{rows}\n</table>'
        )
        if first_message(outcomes):
            link = html.escape(address(graded.exercise, question))
            parts.append(f'<p>Read again: <a href="{link}">{link}</a></p>')
    if graded.notes:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in graded.notes)
        parts.append(f"<ul>{notes}</ul>")
    return "\n".join(parts)


def _row(outcome: Outcome) -> str:
    name = outcome.check.removeprefix("check_").replace("_", " ")
    kind = "passed" if outcome.passed else "failed"
    hidden = " (hidden)" if outcome.hidden else ""
    message = html.escape(outcome.message) or kind
    return (
        f"<tr><td>{name}{hidden}</td><td>{points([outcome])}</td>"
        f'<td class="{kind}">{message}</td></tr>'
    )


def grades(results: Iterable[Result]) -> str:
    """A row for every submission, as CSV."""
    names = [f"q{number}" for number in range(1, QUESTIONS + 1)]
    rows: list[list[object]] = [
        ["student", "file", "exercise", "earned", "points", *names, "problem"]
    ]
    for result in results:
        graded = result.graded
        if graded is None:
            blank = [""] * (QUESTIONS + 3)
            rows.append([result.student, result.file, *blank, result.problem])
            continue
        earned = {
            question.name: sum(outcome.earned for outcome in outcomes)
            for question, outcomes in by_question(graded)
        }
        each = [earned.get(name, "") for name in names]
        start = [result.student, result.file, graded.exercise]
        rows.append(
            [*start, graded.earned, graded.points, *each, " ".join(graded.notes)]
        )
    return _csv(rows)


def statistics(results: Iterable[Result]) -> list[list[object]]:
    """A row for every question: how it went, and the most frequent mistake."""
    done = [result.graded for result in results if result.graded is not None]
    head = [
        "exercise",
        "question",
        "title",
        "submissions",
        "points",
        "mean",
        "full",
        "none",
    ]
    rows: list[list[object]] = [[*head, "most frequent mistake", "times"]]
    for name, exercise in exercises().items():
        here = [graded for graded in done if graded.exercise == name]
        for question in exercise.questions if here else []:
            answers = [dict(_by_name(graded))[question.name] for graded in here]
            earned = [sum(o.earned for o in outcomes) for outcomes in answers]
            there = sum(outcome.points for outcome in answers[0])
            said = Counter(filter(None, map(first_message, answers)))
            ((mistake, times),) = said.most_common(1) or [("", 0)]
            rows.append([name, question.name, question.title, len(here), there])
            rows[-1] += [round(sum(earned) / len(here), 2), earned.count(there)]
            rows[-1] += [earned.count(0), mistake, times]
    return rows


def _by_name(graded: Graded) -> Iterator[tuple[str, list[Outcome]]]:
    for question, outcomes in by_question(graded):
        yield question.name, outcomes


def statistics_csv(results: Iterable[Result]) -> str:
    """The statistics of ``statistics`` as CSV."""
    return _csv(statistics(results))


def _csv(rows: Iterable[Iterable[object]]) -> str:
    """Rows as CSV; what a spreadsheet would take for a formula is quoted."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        cells = (
            f"'{cell}"
            if isinstance(cell, str) and cell.lstrip()[:1] in FORMULA
            else cell
            for cell in row
        )
        writer.writerow(cells)
    return stream.getvalue()
