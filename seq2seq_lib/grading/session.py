"""How a submission is run: its cells in a box, then its functions, check by check."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seq2seq_lib.grading.checks import (
    PUBLIC_SECRET,
    MissingError,
    Outcome,
    run_checks,
    shown,
    student_error,
)
from seq2seq_lib.grading.exercise import Exercise
from seq2seq_lib.grading.sandbox import (
    Box,
    BoxLostError,
    Limits,
    Strength,
    TooLongError,
)
from seq2seq_lib.grading.submission import Submission, definitions, functions
from seq2seq_lib.grading.wire import WireError, decode, encode

MOST_STARTS = 24


@dataclass(frozen=True)
class Graded:
    """A submission with what came of it.

    Attributes:
        exercise: its name.
        outcomes: of every check.
        notes: what happened to cells that did not run to their end.
        strength: of the sandbox.
    """

    exercise: str
    outcomes: list[Outcome]
    notes: list[str]
    strength: Strength

    @property
    def earned(self) -> int:
        """Points of all checks that passed."""
        return sum(outcome.earned for outcome in self.outcomes)

    @property
    def points(self) -> int:
        """Points there are."""
        return sum(outcome.points for outcome in self.outcomes)


def grade(
    submission: Submission,
    exercise: Exercise,
    *,
    strength: Strength,
    limits: Limits | None = None,
    secret: str = PUBLIC_SECRET,
    extra: Mapping[str, str] | None = None,
) -> Graded:
    """Run a submission in a box and judge it."""
    session = _Session(submission, exercise, strength, limits or Limits())
    try:
        outcomes = run_checks(
            exercise,
            session.function,
            secret=secret,
            extra=extra,
            before_hidden=session.keep_notes,
        )
    finally:
        session.close()
    return Graded(exercise.name, outcomes, session.notes, strength)


class _CellLostError(Exception):
    """A cell took its box down."""

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.number = number


class _Session:
    """Boxes for one submission, one after the other: a lost one is replaced.

    A cell that took its box down runs with its definitions only in the next one, and
    not at all if that does not help. A function that lost a box in which others had run
    is called once more in a box of its own, because the fault may be theirs.
    """

    def __init__(
        self,
        submission: Submission,
        exercise: Exercise,
        strength: Strength,
        limits: Limits,
    ) -> None:
        self.exercise = exercise
        self.strength = strength
        self.limits = limits
        self.cells = list(submission.cells)
        self.troubles: dict[int, str] = {}
        self.notes: list[str] = []
        self.starts = 0
        self.deadline = time.monotonic() + limits.total
        self.box: Box | None = None
        self.called: set[str] = set()

    def function(self, name: str) -> Callable[..., Any]:
        """A stand-in for a student's function, which calls it in the box."""

        def called(*arguments: Any, **options: Any) -> Any:
            try:
                reply = self._call(name, encode((arguments, options)))
                if "missing" in reply:
                    raise MissingError(name)
                if "error" in reply:
                    kind, message = str(reply["error"]), str(reply.get("message"))
                    raise student_error(name, kind[:80], message[:300])
                return decode(reply.get("value"))
            except WireError as error:
                raise student_error(name, WireError.__name__, str(error)) from None

        return called

    def _call(self, name: str, arguments: Any) -> dict[str, Any]:
        while True:
            box = self._ready()
            alone = self.called <= {name}
            self.called.add(name)
            try:
                return box.ask(call=name, arguments=arguments)
            except BoxLostError as error:
                self.box = None
                if alone or isinstance(error, TooLongError):
                    raise

    def _in_time(self) -> None:
        if time.monotonic() > self.deadline:
            raise BoxLostError(f"it had {self.limits.total:.0f} seconds in all")

    def _ready(self) -> Box:
        self._in_time()
        while self.box is None:
            self._in_time()
            self.starts += 1
            if self.starts > MOST_STARTS:
                raise BoxLostError("it ended its process again and again")
            box = Box(self.strength, self.limits)
            self.called = set()
            try:
                if self._filled(box):
                    self.box = box
            except BoxLostError:
                box.close()
                raise
        return self.box

    def _filled(self, box: Box) -> bool:
        """Run all cells; whether the box survived them.

        A cell that misses a name may stand before the cell that defines it, and runs
        again behind the others; of a function that stands twice the last one counts all
        the same. What is given runs last again, so that nothing that a student changed
        there counts.
        """
        own = [(n, cell) for n, cell in enumerate(self.cells) if cell.strip()]
        try:
            self._give(box)
            late = [cell for cell in own if self._run(box, *cell) == NameError.__name__]
            for number, cell in late:
                if not self._run(box, number, cell):
                    del self.troubles[number]
            again: set[str] = set()  # what late cells before this one define
            numbers = {number for number, _ in late}
            for number, cell in own if late else ():
                names = functions(cell)
                if names & again:
                    self._ask(box, number, definitions(cell), each=True)
                if number in numbers:
                    again |= names
            self._give(box)
        except _CellLostError as lost:
            self._give_up(lost.number, str(lost))
            return False
        return True

    def _give(self, box: Box) -> None:
        for cell in self.exercise.given:
            box.ask(cell=cell, name="given")

    def _run(self, box: Box, number: int, cell: str) -> str:
        """Run a cell, and if it fails its definitions; the kind of its error."""
        reply = self._ask(box, number, cell)
        kind = str(reply.get("error", ""))[:80]
        if kind:
            what = f"{kind}: {str(reply.get('message'))[:300]}"
            self.troubles[number] = f"raised {what}"
            self._give(box)  # what it misses may be what was edited there
            self._ask(box, number, definitions(cell), each=True)
        return kind

    def _ask(
        self, box: Box, number: int, cell: str, *, each: bool = False
    ) -> dict[str, Any]:
        """Run a cell, or each of its statements, whatever becomes of the others."""
        self._in_time()
        try:
            return box.ask(cell=cell, name=f"cell {number}", each=each)
        except BoxLostError as error:
            raise _CellLostError(number, str(error)) from error

    def _give_up(self, number: int, reason: str) -> None:
        kept = definitions(self.cells[number])
        if kept == self.cells[number]:
            kept = ""
        self.cells[number] = kept
        what = "only its definitions count" if kept.strip() else "it was left out"
        self.troubles[number] = f"was stopped, because {reason}; {what}"

    def keep_notes(self) -> None:
        """Write down what happened to cells that did not run to their end.

        Cells that run again later, because a box was lost, may know hidden inputs.
        """
        self.notes = [
            " ".join(shown(f"Code cell {number + 1} {what}.").split())
            for number, what in sorted(self.troubles.items())
        ]

    def close(self) -> None:
        """End the last box."""
        if self.box is not None:
            self.box.close()
