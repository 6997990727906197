"""Instant feedback in a notebook: otter runs the checks that students may see.

Otter shows what a failing check says; this adds what its own messages leave out, the
score so far, and that hidden checks remain.
"""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from otter import Notebook  # type: ignore[import-untyped]
from otter.test_files import test_case  # type: ignore[import-untyped]

from seq2seq_lib.grading.checks import PUBLIC_SECRET, explained, local, run_check
from seq2seq_lib.grading.exercise import Check, Exercise, Question, exercises

TEST = '''\
"""Checks of question {question}. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "{question}"
points = None

{helpers}

{checks}'''

_passed: dict[str, dict[str, int]] = {}


def start(name: str) -> Notebook:
    """The grader of an exercise, whose ``check("q1")`` runs the checks of a question.

    Args:
        name: of the exercise, such as 06_attention.

    Raises:
        ValueError: there is no such exercise.
    """
    if name not in exercises():
        raise ValueError(f"no exercise {name!r}: expected one of {[*exercises()]}.")
    exercise = exercises()[name]
    folder = Path(tempfile.mkdtemp(prefix="checks-"))
    for question in exercise.questions:
        text = otter_test(exercise, question)
        (folder / f"{question.name}.py").write_text(text, encoding="utf-8")
    _passed.pop(name, None)
    return Notebook(tests_dir=str(folder))


def score(name: str) -> None:
    """Print the whole score of the notebook that this runs in.

    Args:
        name: of the exercise, such as 06_attention.
    """
    path = notebook_file(name)
    if path.exists():
        command = [sys.executable, "-m", "seq2seq_lib", "grade", str(path)]
        done = subprocess.run(  # noqa: S603 - our own interpreter
            command, capture_output=True, text=True, encoding="utf-8", check=False
        )
        print(done.stdout + done.stderr)  # noqa: T201 - for the student
    else:
        print(  # noqa: T201
            f"There is no file {path}: save the notebook, then run `seq2seq grade` "
            "with its name in a terminal."
        )


def notebook_file(name: str) -> Path:
    """The file of the notebook that this runs in, whatever it is called.

    Colab keeps notebooks elsewhere, and is asked for what is on the screen. Jupyter and
    VS Code tell the name of the file.
    """
    if "google.colab" in sys.modules:
        colab = importlib.import_module("google.colab._message")
        reply = colab.blocking_request("get_ipynb", timeout_sec=60)
        path = Path(tempfile.mkdtemp(prefix="saved-")) / f"{name}.ipynb"
        path.write_text(json.dumps(reply["ipynb"]), encoding="utf-8")
        return path
    code = vars(sys.modules["__main__"]).get("__vsc_ipynb_file__")
    said = code or os.environ.get("JPY_SESSION_NAME")
    return Path(said) if said and Path(said).is_file() else Path(f"{name}.ipynb")


def otter_test(exercise: Exercise, question: Question) -> str:
    """The checks that students may see, as a test file of otter."""
    decorator = f'@case("{exercise.name}", "{question.name}")\n'
    return TEST.format(
        question=question.name,
        helpers=exercise.helpers,
        checks=re.sub(r"(?m)^(?=def check_)", decorator, question.checks),
    )


class case(test_case):  # type: ignore[misc] # noqa: N801 - a decorator, as otter's own
    """Marks a check of a question for otter.

    Args:
        exercise: its name.
        question: its name.
    """

    def __init__(self, exercise: str, question: str) -> None:
        super().__init__()
        self.exercise = exercises()[exercise]
        (self.question,) = (q for q in self.exercise.questions if q.name == question)

    def __call__(self, test_func: Any) -> "case":
        """Take the check's function, and look up what it is worth."""
        name = test_func.__name__
        checks = self.exercise.checks(self.question)
        (known,) = (check for check in checks if check.name == name)
        shown = [check.name for check in checks if not check.hidden]
        self.is_last = name == shown[-1]
        self.check = Check(
            name=name,
            points=known.points,
            hidden=False,
            function=test_func,
            parameters=known.parameters,
        )
        self.points = known.points
        self.name = name.removeprefix("check_").replace("_", " ")
        super().__call__(test_func)
        return self

    def call_func(self, global_environment: dict[str, Any]) -> None:
        """Run the check on the student's functions; otter calls this."""
        passed = _passed.setdefault(self.exercise.name, {})
        passed.pop(self.check.name, None)
        seed = (PUBLIC_SECRET, self.exercise.name)
        try:
            run_check(self.check, local(global_environment), seed=seed)
        except Exception as error:  # noqa: BLE001 - from data of any shape
            place = error.__traceback__
            while place is not None and (
                place.tb_frame.f_code is not self.check.function.__code__
            ):
                place = place.tb_next
            message = explained(error, hidden=False)
            raise AssertionError(message).with_traceback(place) from None
        else:
            passed[self.check.name] = self.check.points
        finally:
            if self.is_last:
                print(score_so_far(self.exercise))  # noqa: T201 - for the student


def score_so_far(exercise: Exercise) -> str:
    """What the checks run so far have earned."""
    checks = [c for q in exercise.questions for c in exercise.checks(q)]
    shown = sum(check.points for check in checks if not check.hidden)
    hidden = sum(check.points for check in checks if check.hidden)
    earned = sum(_passed.get(exercise.name, {}).values())
    return (
        f"Score so far: {earned} of {shown} points. Hidden checks decide about "
        f"{hidden} more: they run with `seq2seq grade` on the saved notebook."
    )
