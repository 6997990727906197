"""Many submissions: found in folders, graded side by side, each one accounted for.

What was graded is kept by its content, so that a run that was stopped goes on where it
was, and a second run is instant.
"""

import dataclasses
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seq2seq_lib.files import write_whole
from seq2seq_lib.grading import submission
from seq2seq_lib.grading.checks import PUBLIC_SECRET, Outcome, shown
from seq2seq_lib.grading.exercise import Exercise, exercises, extra_checks
from seq2seq_lib.grading.sandbox import Limits, Strength
from seq2seq_lib.grading.session import Graded, grade

NOTEBOOK = re.compile(r"(?i)\.ipynb(?: ?\(\d+\))?(?:\.(?:txt|json))?$")
SOURCES = sorted(Path(__file__).parent.glob("*.py"))


@dataclass(frozen=True)
class Result:
    """What came of one file.

    Attributes:
        student: their name.
        file: its path, as given.
        graded: the outcome; ``None`` if it could not be graded.
        problem: why not.
    """

    student: str
    file: str
    graded: Graded | None = None
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How submissions are graded.

    Attributes:
        strength: of the sandbox.
        limits: on what students' code may use.
        secret: decides the inputs of hidden checks.
        hidden: a folder of further hidden checks, one file for each exercise.
        exercise: the name of the exercise, if files should not be asked.
        kept: where results are kept; ``None`` keeps none.
    """

    strength: Strength
    limits: Limits = field(default_factory=Limits)
    secret: str = PUBLIC_SECRET
    hidden: Path | None = None
    exercise: str | None = None
    kept: Path | None = None

    def extra_for(self, exercise: Exercise) -> dict[str, str]:
        """Code of further hidden checks, by question.

        Raises:
            ValueError: the file of the exercise is not as it should be.
        """
        path = self.hidden and self.hidden / f"{exercise.name}.py"
        if path is None or not path.exists():
            return {}
        found = extra_checks(path.read_text(encoding="utf-8"))
        if unknown := found.keys() - {q.name for q in exercise.questions}:
            raise ValueError(f"{path}: {exercise.name} has no {sorted(unknown)}.")
        return found


def find(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """The notebooks in files and folders, each with its student's name.

    A notebook right inside of a folder is named by its file, one further inside by the
    folder it stands in below that. What cannot be graded is found all the same, so that
    it is accounted for: a link, or a student's folder without a notebook.

    Raises:
        ValueError: a path does not exist, or a folder holds no notebook.
    """
    return [entry for path in paths for entry in _inside(path)]


def _inside(path: Path) -> Iterator[tuple[Path, str]]:
    if not path.is_dir():
        if not path.exists() and not path.is_symlink():
            raise ValueError(f"{path} does not exist: give notebooks or folders.")
        yield path, path.stem
        return
    found = [file for file in sorted(path.rglob("*")) if _handed_in(file)]
    if not found:
        raise ValueError(f"{path} holds no notebook: expected files *.ipynb.")
    named = [(file, file.relative_to(path).parts) for file in found]
    folders = {parts[0] for _, parts in named if len(parts) > 1}
    for file, parts in named:
        yield file, parts[0] if len(parts) > 1 else NOTEBOOK.split(file.name)[0]
    for entry in sorted(path.iterdir()):
        hidden = entry.name.startswith((".", "__"))
        known = entry in found or entry.name in folders
        if entry.is_dir() and not hidden and not known:
            yield entry, entry.name


def _handed_in(file: Path) -> bool:
    """Whether it is meant as a notebook, also if a browser changed its name."""
    if ".ipynb_checkpoints" in file.parts or file.name.startswith("._"):
        return False
    is_folder = file.is_dir() and not file.is_symlink()
    return NOTEBOOK.search(file.name) is not None and not is_folder


def grade_all(
    found: Sequence[tuple[Path, str]],
    settings: Settings,
    *,
    jobs: int = 1,
    report: Callable[[Result], None] | None = None,
) -> list[Result]:
    """Grade submissions side by side; one that is bad never stops the others.

    Args:
        found: files with students' names.
        settings: how.
        jobs: how many at a time.
        report: told each result as it comes.
    """
    for exercise in exercises().values():
        settings.extra_for(exercise)  # complain before, not in the middle
    lock = threading.Lock()

    def one(entry: tuple[Path, str]) -> Result:
        result = _grade_file(*entry, settings)
        if report is not None:
            with lock:
                report(result)
        return result

    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        return list(pool.map(one, found))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _grade_file(path: Path, student: str, settings: Settings) -> Result:
    student, file = (" ".join(shown(name).split()) for name in (student, str(path)))
    try:
        read = submission.read(path, student)
        if settings.exercise is not None:
            exercise = exercises()[settings.exercise]
        else:
            exercise = submission.exercise_of(read, exercises())
        extra = settings.extra_for(exercise)
        kept = _place(read.digest, exercise, extra, settings)
        graded = _load(kept)
        if graded is None:
            graded = grade(
                read,
                exercise,
                strength=settings.strength,
                limits=settings.limits,
                secret=settings.secret,
                extra=extra,
            )
            _store(kept, graded)
    except submission.RefusedError as error:
        return Result(student, file, problem=f"refused: {error}")
    except Exception as error:  # noqa: BLE001 - the others still count
        what = shown(f"{type(error).__name__}: {error}")
        return Result(student, file, problem=f"not graded, which is our fault: {what}")
    return Result(student, file, graded)


def _place(
    digest: str, exercise: Exercise, extra: dict[str, str], settings: Settings
) -> Path | None:
    """Where a result is kept; named by all that it depends on."""
    if settings.kept is None:
        return None
    name = hashlib.sha256()
    limits = dataclasses.asdict(settings.limits)
    parts = (digest, exercise.to_json(), extra, settings.secret, settings.strength)
    name.update(json.dumps([*parts, limits]).encode())
    for source in SOURCES:
        name.update(source.read_bytes())
    return settings.kept / f"{name.hexdigest()}.json"


def _load(path: Path | None) -> Graded | None:
    if path is None or not path.exists():
        return None
    kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    outcomes = [Outcome(**outcome) for outcome in kept["outcomes"]]
    strength = Strength(kept["strength"])
    return Graded(kept["exercise"], outcomes, kept["notes"], strength)


def _store(path: Path | None, graded: Graded) -> None:
    # What the clock stopped may go well when the machine is less busy.
    texts = [*graded.notes, *(outcome.message for outcome in graded.outcomes)]
    if path is not None and not any("it took longer than" in text for text in texts):
        write_whole(path, json.dumps(dataclasses.asdict(graded), ensure_ascii=False))
