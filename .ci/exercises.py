"""Writes everything that follows from the sources of the exercises.

From ``exercises/NN_topic/source.py`` come the student's notebook and its tests, the
page of the book, and what the grader needs. With ``--check`` nothing is written: the
files that are stale are named, and the exit code is 1 if there are any.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from address import Address, read_address

from seq2seq_lib.files import write_whole
from seq2seq_lib.grading.exercise import Exercise, Question
from seq2seq_lib.grading.practice import otter_test

ROOT = Path(__file__).resolve().parent.parent
BUNDLES = ROOT / "seq2seq_lib" / "grading" / "exercises"
# Otter, and what Colab lacks of what it needs.
OTTER = ("otter-grader", "fica", "ipylab", "python-frontmatter")

SETUP = """\
# Installs what Colab or a downloaded notebook lacks, and does nothing elsewhere.
import importlib.util
import os
import sys

if importlib.util.find_spec("seq2seq_lib") is None:
    release = "git+{url}@v{version}"
    source = os.environ.get("SEQ2SEQ_SOURCE", release)
    %pip install -q "seq2seq_lib @ {{source}}"
if importlib.util.find_spec("otter") is None:
    # Colab has the rest, in versions that must stay as they are.
    others = "--no-deps" if "google.colab" in sys.modules else ""
    %pip install -q {{others}} {otter}

from seq2seq_lib.grading import practice

grader = practice.start("{name}")"""
HOW = """\
Write each answer where the cell raises `NotImplementedError`, then run the cell below
it: the checks name the likely mistake. Some checks are hidden. For the whole score,
save the notebook and run its last cell. Solutions are folded in
[the book]({pages}/exercises/{name}.html)."""
END = """\
## Your score

Save the notebook, then run this cell. It starts from a fresh Python: what stands in the
cells counts, not what happens to be in memory. In a terminal, `seq2seq grade` with the
name of the notebook does the same; with `--html report.html` it writes a page that says
what to read again."""

GRADE = 'practice.score("{name}")'


def notebook(exercise: Exercise, address: Address) -> str:
    """The student's notebook."""
    pages = f"https://{address.owner}.github.io/{address.name}"
    setup = SETUP.format(
        url=address.url,
        version=address.version,
        otter=" ".join(otter_pins()),
        name=exercise.name,
    )
    how = HOW.format(name=exercise.name, pages=pages)
    cells = [
        text("title", f"# {exercise.title}\n\n{exercise.text}\n\n{how}"),
        code("setup", setup),
    ]
    cells += [code(f"given{i}", cell) for i, cell in enumerate(exercise.given, start=1)]
    for number, question in enumerate(exercise.questions, start=1):
        body = f"{heading(exercise, question, number)}\n\n{question.text}"
        hints = "\n\n".join(folded_hints(question))
        cells += [
            text(f"{question.name}-text", f"{body}\n\n{hints}"),
            code(question.name, question.stub),
            code(f"{question.name}-check", f'grader.check("{question.name}")'),
        ]
    cells += [text("end", END), code("grade", GRADE.format(name=exercise.name))]
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python"}
    made = {
        "cells": cells,
        "metadata": {
            "kernelspec": kernel | {"name": "python3"},
            "language_info": {"name": "python", "pygments_lexer": "ipython3"},
            "seq2seq": {"exercise": exercise.name},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return f"{json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True)}\n"


def code(name: str, source: str) -> dict[str, Any]:
    """A code cell that has not been run."""
    made = {"cell_type": "code", "execution_count": None, "outputs": []}
    return text(name, source) | made


def text(name: str, source: str) -> dict[str, Any]:
    """A cell of Markdown."""
    lines = source.strip().splitlines(keepends=True)
    return {"id": name, "cell_type": "markdown", "metadata": {}, "source": lines}


def otter_pins() -> Iterator[str]:
    """The versions of otter and of what it needs, from the lock file."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    for name in OTTER:
        yield next(line for line in lock if line.startswith(f"{name}=="))


def heading(exercise: Exercise, question: Question, number: int) -> str:
    """The title of a question, and what it takes."""
    points = exercise.points(question)
    return (
        f"## {number} {question.title}\n\n"
        f"*{points} points · difficulty {question.difficulty} of 5 · about "
        f"{question.minutes} minutes*"
    )


def folded_hints(question: Question) -> Iterator[str]:
    """Both hints, each behind a line to click on."""
    for number, hint in enumerate(question.hints, start=1):
        yield folded(f"Hint {number}", hint)


def folded(summary: str, body: str, kind: str = "hint") -> str:
    """Text behind a line to click on."""
    return (
        f'<details class="{kind}">\n<summary>{summary}</summary>\n\n'
        f"{body.strip()}\n\n</details>"
    )


def page(exercise: Exercise, address: Address) -> str:
    """The page of the book; its solutions are left out by `make book SOLUTIONS=0`."""
    path = f"{address.owner}/{address.name}/blob/{address.branch}/exercises"
    file = f"{exercise.name}/{exercise.name}.ipynb"
    total = sum(exercise.points(question) for question in exercise.questions)
    parts = [
        f"# {exercise.title}",
        exercise.text,
        (
            f"{len(exercise.questions)} questions, {total} points. Write your answers "
            "in the notebook, "
            f"[in Colab](https://colab.research.google.com/github/{path}/{file}) or "
            f"[on your machine](https://github.com/{path}/{file}): its checks name the "
            f"likely mistake. [Back to the chapter](../{exercise.name}.ipynb)."
        ),
    ]
    for number, question in enumerate(exercise.questions, start=1):
        section = f"../{question.section(exercise.name, 'ipynb')}"
        parts += [
            heading(exercise, question, number),
            question.text,
            f"If you are stuck, read [this section]({section}) again.",
            f"```python\n{question.stub.strip()}\n```",
            *folded_hints(question),
            folded(
                "Solution", f"```python\n{without_marks(question)}\n```", "solution"
            ),
        ]
    return "\n\n".join(parts) + "\n"


def without_marks(question: Question) -> str:
    """The solution without the comments that say where it begins and ends."""
    return re.sub(r"(?m)^ *# (BEGIN|END) SOLUTION\n", "", question.solution).strip()


def products(source: Path, address: Address) -> Iterator[tuple[Path, str]]:
    """Every file that follows from a source, with its text.

    Raises:
        ValueError: the source is not as it should be.
    """
    folder = source.parent
    exercise = Exercise.from_source(folder.name, source.read_text(encoding="utf-8"))
    yield BUNDLES / f"{exercise.name}.json", exercise.to_json()
    yield folder / f"{exercise.name}.ipynb", notebook(exercise, address)
    yield ROOT / "book" / "exercises" / f"{exercise.name}.md", page(exercise, address)
    for question in exercise.questions:
        yield folder / "tests" / f"{question.name}.py", otter_test(exercise, question)


def strangers(made: set[Path]) -> Iterator[Path]:
    """Files in the places of the products that follow from no source."""
    for place in (BUNDLES, ROOT / "book" / "exercises"):
        yield from (path for path in place.glob("*.*") if path not in made)
    for path in ROOT.glob("exercises/*/tests/*.py"):
        if path not in made:
            yield path


def main() -> int:
    """Write or check the products."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say what is stale")
    check = parser.parse_args().check
    address = read_address()
    made: dict[Path, str] = {}
    wrong = []
    for source in sorted(ROOT.glob("exercises/*/source.py")):
        try:
            made |= products(source, address)
        except ValueError as error:
            wrong.append(source.parent.name)
            print(error, file=sys.stderr)
    stale = [
        path
        for path, content in made.items()
        if not path.exists() or path.read_text(encoding="utf-8") != content
    ]
    left = [p for p in strangers(set(made)) if not {p.stem, *p.parts} & set(wrong)]
    for path in stale + left:
        name = path.relative_to(ROOT)
        if check:
            print(f"{name} does not follow from its source: run `make exercises`")
        elif path in left:
            path.unlink()
            print(f"{name} removed")
        else:
            write_whole(path, made[path])
            print(f"{name} written")
    return int(bool(wrong) or (check and bool(stale or left)))


if __name__ == "__main__":
    sys.exit(main())
