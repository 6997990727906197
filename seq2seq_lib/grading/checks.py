"""How an answer is judged: check after check, on data only.

A check is a plain function that takes the student's functions by name. Here they are
functions of the same process in practice, and proxies of a box when it counts.
"""

import builtins
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from seq2seq_lib.grading.exercise import RANDOM, Check, Exercise, Question
from seq2seq_lib.grading.sandbox import BoxLostError, NotStartedError
from seq2seq_lib.grading.wire import WireError, by_value

PUBLIC_SECRET = "public"  # noqa: S105 - for practising; a class has its own
LONGEST = 500
# Errors that are named in hidden checks: among all names a student could choose.
USUAL = {"IndexError", "KeyError", "NameError", "RuntimeError", "TypeError"}
USUAL |= {"AttributeError", "ValueError", NotImplementedError.__name__}

Functions = Callable[[str], Callable[..., Any]]


class MissingError(Exception):
    """The student has no function of this name."""


@dataclass(frozen=True)
class Outcome:
    """What came of one check.

    Attributes:
        question: its name.
        check: its name.
        points: what it is worth.
        passed: whether it was earned.
        hidden: whether students see the check.
        message: the likely mistake, if it was not.
    """

    question: str
    check: str
    points: int
    passed: bool
    hidden: bool
    message: str = ""

    @property
    def earned(self) -> int:
        """Points of this check."""
        return self.points if self.passed else 0


def run_checks(
    exercise: Exercise,
    functions: Functions,
    *,
    secret: str = PUBLIC_SECRET,
    extra: Mapping[str, str] | None = None,
    before_hidden: Callable[[], None] = lambda: None,
) -> list[Outcome]:
    """Judge every question.

    All public checks run before the first hidden one. What a student's code says in
    public checks is shown, so by then it must not have seen a hidden input.

    Args:
        exercise: what was asked.
        functions: gives the student's function of a name.
        secret: decides the inputs of hidden checks.
        extra: code of further hidden checks, by question.
        before_hidden: is called between the two.
    """
    asked = [
        (question, check)
        for question in exercise.questions
        for check in exercise.checks(
            question, extra=(extra or {}).get(question.name, "")
        )
    ]
    outcomes: dict[tuple[str, str], Outcome] = {}
    lost: dict[str, str] = {}
    for hidden in (False, True):
        for question, check in asked:
            if check.hidden is hidden:
                seed = (secret, exercise.name)
                outcome = _judged(question, check, functions, seed, lost)
                outcomes[question.name, check.name] = outcome
        if not hidden:
            before_hidden()
    return [outcomes[question.name, check.name] for question, check in asked]


def _judged(
    question: Question,
    check: Check,
    functions: Functions,
    seed: tuple[str, str],
    lost: dict[str, str],
) -> Outcome:
    """Run one check; ``lost`` says which questions take their box down, and why."""
    message = lost.get(question.name, "")
    if not message:
        try:
            run_check(check, functions, seed=seed)
        except NotStartedError:
            raise  # not the student's fault
        except BoxLostError as error:
            # It would be lost again, so the other checks need not wait for it.
            message = lost[question.name] = f"Your code was stopped: {error}."
        except Exception as error:  # noqa: BLE001 - from data of any shape
            message = explained(error, hidden=check.hidden)
    return Outcome(
        question.name, check.name, check.points, not message, check.hidden, message
    )


def run_check(check: Check, functions: Functions, *, seed: tuple[str, str]) -> None:
    """Run one check, with random numbers that depend on secret and exercise.

    Raises:
        AssertionError: the check failed; the message names the likely mistake.
    """
    values = {
        name: _generator(*seed, check.name) if name == RANDOM else functions(name)
        for name in check.parameters
    }
    check.function(**values)


def _generator(*words: str) -> torch.Generator:
    digest = hashlib.sha256("\0".join(words).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


class StudentError(Exception):
    """An error that a student's function raised, other than the usual kinds."""


def student_error(name: str, kind: str, message: str) -> Exception:
    """An error that a student's function raised, as an error of the same kind.

    A check may expect a ``ValueError``; it never meets a class that a student made, nor
    the ``NotImplementedError`` of a stub, which nothing should take for an answer.
    """
    usual = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError)
    found = getattr(builtins, kind, None)
    if (
        not isinstance(found, type)
        or not issubclass(found, usual)
        or issubclass(found, NotImplementedError | UnicodeError)
    ):
        found = StudentError
    error: Exception = found(message)
    error.student = (name, kind)  # type: ignore[attr-defined]
    return error


def local(namespace: Mapping[str, Any]) -> Functions:
    """The functions of a namespace in this process, called by value."""

    def found(name: str) -> Callable[..., Any]:
        def called(*arguments: Any, **options: Any) -> Any:
            if not callable(namespace.get(name)):
                raise MissingError(name)
            try:
                return by_value(namespace[name])(*arguments, **options)
            except Exception as error:
                raise student_error(name, type(error).__name__, str(error)) from error

        return called

    return found


def explained(error: Exception, *, hidden: bool) -> str:
    """What to tell a student about an error that a check met.

    What a student's code says about a hidden check stays hidden, because it could tell
    the inputs: in words, in the name of an error, or as the size of an answer.
    """
    kind = type(error).__name__
    text = "" if hidden else f": {error}"
    match error:
        case AssertionError():
            message = str(error) or "This check failed."
            if hidden and message not in _texts(error):
                message = re.sub(r"\d[\d, ]*", "…", message)
        case MissingError():
            message = (
                f"There is no function `{error}` in the notebook: its cell may be "
                "gone, or have an error. Copy the cell from the exercise again."
            )
        case _ if hasattr(error, "student"):
            name, kind = error.student
            known = kind if kind in USUAL or not hidden else "an error"
            message = f"`{name}` raised {known}{text}"
            if kind == NotImplementedError.__name__:
                message = f"`{name}` is not written yet."
            elif kind == WireError.__name__:
                message = f"`{name}` returned {'something else' if hidden else error}"
        case _:
            message = (
                "The answer could not be compared: does it have the type and the shape "
                f"that the signature says? ({kind}{text})"
            )
    return shown(message)


def _texts(error: Exception) -> Iterator[object]:
    """What stands word for word in the check that an error comes from."""
    place = error.__traceback__
    while place is not None:
        code = place.tb_frame.f_code
        if code.co_name.startswith("check_"):
            for constant in code.co_consts:
                yield from constant if isinstance(constant, tuple) else [constant]
        place = place.tb_next


def shown(text: str) -> str:
    r"""Text of a student's process, safe to print and the same in every run.

    >>> shown("red \x1b[31m <object at 0x7f00ab>")
    'red ?[31m <object at 0x…>'
    """
    text = re.sub(r"\b0x[0-9a-f]+", "0x…", text[:LONGEST])
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
