"""What an exercise asks: read from its source, or from what the library carries of it.

A source is a Python file in cells, ``exercises/NN_topic/source.py``; the README there
describes it. The library carries the part that grading needs, as JSON, in
``seq2seq_lib/grading/exercises/``; ``make exercises`` writes it.
"""

import ast
import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from seq2seq_lib.grading.sandbox import EXERCISES

CELL = re.compile(r"(?m)^# %%(.*)\n")
CHECK = re.compile(r"(?m)^def (check_\w+)\((.*)\):  # (\d+) points?$")
BLOCK = re.compile(r"(?ms)^( *)# BEGIN SOLUTION\n.*?^ *# END SOLUTION\n")
RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of one question.

    Attributes:
        name: of its function.
        points: what passing it is worth.
        hidden: whether students see its code and its inputs.
        function: takes the student's functions by name, and perhaps ``random``, a
            generator that depends on the course's secret.
        parameters: the names it takes.
    """

    name: str
    points: int
    hidden: bool
    function: Callable[..., None]
    parameters: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of an exercise.

    Attributes:
        name: q1, q2, …
        title: its heading.
        difficulty: 1 to 5.
        minutes: it takes, roughly.
        reread: the heading of the chapter that explains it, as in a link; with
            ``labs#`` before it a heading of the chapter's lab.
        functions: what the student writes.
        checks: code of the checks that students see.
        hidden: code of those they do not.
        text: the question in Markdown, without its heading.
        hints: two, in Markdown.
        solution: code.
    """

    name: str
    title: str
    difficulty: int
    minutes: int
    reread: str
    functions: list[str]
    checks: str
    hidden: str
    text: str = ""
    hints: list[str] = field(default_factory=list)
    solution: str = ""

    def section(self, exercise: str, kind: str) -> str:
        """The path of the section that explains it, below the book.

        Args:
            exercise: the name of the exercise, which is its chapter's.
            kind: how names of pages end, ``ipynb`` or ``html``.
        """
        folder, _, heading = self.reread.rpartition("#")
        return f"{folder}/{exercise}.{kind}#{heading}".lstrip("/")

    @property
    def stub(self) -> str:
        """The solution without what the student shall write."""
        names = " and ".join(self.functions)
        return BLOCK.sub(
            rf'\1raise NotImplementedError("write {names}")\n', self.solution
        )


@dataclass(frozen=True, kw_only=True)
class Exercise:
    """The graded exercise of one chapter.

    Attributes:
        name: NN_topic, the name of its chapter too.
        title: its heading.
        given: code that the notebook gives, in cells.
        helpers: code that all checks share.
        questions: in their order.
        text: the introduction in Markdown, without its heading.
    """

    name: str
    title: str
    given: list[str]
    helpers: str
    questions: list[Question]
    text: str = ""

    def checks(self, question: Question, *, extra: str = "") -> list[Check]:
        """The checks of a question, those that students see first.

        Args:
            question: one of this exercise.
            extra: code of further hidden checks.
        """
        return [
            *_compiled(f"{self.helpers}\n\n{question.checks}", hidden=False),
            *_compiled(f"{self.helpers}\n\n{question.hidden}", hidden=True),
            *_compiled(f"{self.helpers}\n\n{extra}", hidden=True),
        ]

    def points(self, question: Question) -> int:
        """What a question is worth."""
        return sum(check.points for check in self.checks(question))

    def to_json(self) -> str:
        """What grading needs, without texts and solutions."""
        kept = dataclasses.asdict(self)
        del kept["text"]
        for question in kept["questions"]:
            for name in ("text", "hints", "solution"):
                del question[name]
        return json.dumps(kept, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Exercise":
        """Read what ``to_json`` wrote."""
        kept = json.loads(text)
        questions = [Question(**question) for question in kept.pop("questions")]
        return cls(**kept, questions=questions)

    @classmethod
    def from_source(cls, name: str, source: str) -> "Exercise":
        """Read a source.

        Raises:
            ValueError: something is missing or not as it should be; says where.
        """
        try:
            exercise = _Reader(source).exercise(name)
            for question in exercise.questions:
                _validate(exercise, question)
        except (ValueError, SyntaxError, KeyError) as error:
            raise ValueError(f"exercises/{name}/source.py: {error}") from error
        return exercise


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Every exercise that the library carries, by name."""
    found = {}
    for path in sorted(EXERCISES.glob("*.json")):
        found[path.stem] = Exercise.from_json(path.read_text(encoding="utf-8"))
    return found


def cells(source: str) -> Iterator[tuple[str, str]]:
    """The cells of a source: what stands behind ``# %%``, and what follows it."""
    _, *parts = CELL.split(source)
    for header, body in zip(parts[::2], parts[1::2], strict=True):
        yield header.strip(), body.strip("\n") + "\n"


def extra_checks(source: str) -> dict[str, str]:
    """Further hidden checks, by question, of a file with cells ``# %% hidden q1``."""
    found: dict[str, str] = {}
    for header, body in cells(source):
        kind, _, question = header.partition(" ")
        if kind != "hidden" or not question:
            raise ValueError(f"a cell '# %% {header}': expected '# %% hidden q1'.")
        found[question] = found.get(question, "") + "\n\n" + body
    return found


def defined(source: str) -> list[str]:
    """The functions, classes and variables that code defines at its top level."""
    found = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.append(node.name)
        elif isinstance(node, ast.Assign):
            found += [t.id for t in node.targets if isinstance(t, ast.Name)]
    return found


@functools.cache
def _compiled(code: str, *, hidden: bool) -> tuple[Check, ...]:
    namespace: dict[str, Any] = {}
    exec(compile(code, "<checks>", "exec"), namespace)  # noqa: S102 - our own
    found = CHECK.findall(code)
    defined_here = {name for name in namespace if name.startswith("check_")}
    if unclear := defined_here - {name for name, _, _ in found}:
        raise ValueError(
            f"{sorted(unclear)}: expected one line 'def check_x(f):  # 2 points'."
        )
    return tuple(
        Check(
            name=name,
            points=int(points),
            hidden=hidden,
            function=namespace[name],
            parameters=tuple(p.strip() for p in parameters.split(",") if p.strip()),
        )
        for name, parameters, points in found
    )


class _Reader:
    """Goes through the cells of a source from top to bottom."""

    def __init__(self, source: str) -> None:
        self.cells = list(cells(source))
        self.given: list[str] = []
        self.helpers = ""
        self.questions: list[dict[str, Any]] = []

    def exercise(self, name: str) -> Exercise:
        title, text = _heading(_text(self.cells[0][1]))
        for header, body in self.cells[1:]:
            self._take(header, body)
        return Exercise(
            name=name,
            title=title,
            given=self.given,
            helpers=self.helpers,
            questions=[Question(**question) for question in self.questions],
            text=text,
        )

    def _take(self, header: str, body: str) -> None:
        kind, *options = header.removeprefix("[markdown] ").split()
        if kind == "given":
            self.given.append(body)
        elif kind == "helpers":
            self.helpers += body
        elif kind == "question":
            settings = dict(option.split("=", 1) for option in options)
            title, text = _heading(_text(body))
            number = len(self.questions) + 1
            self.questions.append({"name": f"q{number}", "title": title, "text": text})
            self.questions[-1] |= {"hints": [], "checks": "", "hidden": ""}
            self.questions[-1] |= {"reread": settings["reread"]}
            self.questions[-1] |= {
                name: int(settings[name]) for name in ("difficulty", "minutes")
            }
        elif kind == "hint" and self.questions:
            self.questions[-1]["hints"].append(_text(body))
        elif kind == "solution" and self.questions:
            functions = [
                node.name
                for node in ast.parse(body).body
                if isinstance(node, ast.FunctionDef | ast.ClassDef)
            ]
            self.questions[-1] |= {"solution": body, "functions": functions}
        elif kind in ("checks", "hidden") and self.questions:
            self.questions[-1][kind] += body
        else:
            raise ValueError(
                f"a cell '# %% {header}': expected given, helpers, question, hint, "
                "solution, checks or hidden, the last four behind a question."
            )


def _text(body: str) -> str:
    return "\n".join(
        line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines()
    )


def _heading(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    if not first.startswith("#"):
        raise ValueError(f"{first!r} should be a heading, such as '# ## Scores'.")
    return first.lstrip("# "), rest.strip()


def _validate(exercise: Exercise, question: Question) -> None:
    where = f"{question.name} ({question.title})"
    if len(question.hints) != 2:
        raise ValueError(f"{where} has {len(question.hints)} hints: expected two.")
    if not 1 <= question.difficulty <= 5:
        raise ValueError(f"{where}: difficulty is 1 to 5, not {question.difficulty}.")
    if not BLOCK.search(question.solution):
        raise ValueError(f"{where}: no # BEGIN SOLUTION … # END SOLUTION.")
    checks = exercise.checks(question)
    if {check.hidden for check in checks} != {True, False}:
        raise ValueError(f"{where} needs checks that are shown, and hidden ones.")
    known = {*question.functions, RANDOM}
    known |= {name for cell in exercise.given for name in defined(cell)}
    for check in checks:
        if unknown := set(check.parameters) - known:
            raise ValueError(f"{check.name} takes {sorted(unknown)}: what is that?")
    names = [c.name for q in exercise.questions for c in exercise.checks(q)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"more than one check is called {sorted(twice)}.")
