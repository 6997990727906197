"""What was handed in: a notebook, perhaps renamed, reordered, edited or hostile."""

import ast
import hashlib
import json
import os
import re
import stat
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seq2seq_lib.grading.exercise import Exercise

LARGEST = 20 << 20
MOST_CELLS = 2000
# Code is parsed here, outside of the sandbox, which takes memory a thousandfold.
MOST_CODE = 100_000
# Each `++` and `*+` gives nothing back, so that no line takes time with its square.
_LINE = r"(?:[^\\\n]|\\(?!\n))*+"
MAGIC = re.compile(
    rf"(?m)^([ \t]*+)(?:(?:\w[\w, ]*+=[ \t]*+)?[%!?]{_LINE}(?:\\\n{_LINE})*+"
    r"|[\w.]++\?{1,2}[ \t]*+|(?:pip|conda|mamba)[ \t]++install\b.*)$"
)
# Cells in another language; other cell magics run Python, with something around it.
FOREIGN = re.compile(
    r"%%(?:bash|sh|script|html|javascript|js|latex|markdown|writefile)"
)
# What belongs to practising, and is neither needed nor there when it counts.
PRACTICE = {"otter", "grader", "practice"}
DEFINING = ast.FunctionDef | ast.ClassDef


class RefusedError(ValueError):
    """A submission that cannot be graded; the message says why and what to do."""


@dataclass(frozen=True)
class Submission:
    """The code of a notebook.

    Attributes:
        path: of the file.
        student: their name, from the file or its folder.
        cells: plain Python, without what only Jupyter understands.
        named: the exercise that the notebook's metadata names, if any.
        digest: of the file's content.
    """

    path: Path
    student: str
    cells: list[str]
    named: str | None
    digest: str


def content(path: Path) -> bytes:
    """The bytes of a submitted file.

    Raises:
        RefusedError: it is a link, no file, or too large.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if path.is_symlink():
            raise RefusedError("it is a symbolic link: hand in the file itself.")
        if path.is_dir():
            raise RefusedError("it is a folder without a notebook (*.ipynb).")
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise RefusedError("it is not a regular file.")
            found = file.read(LARGEST + 1)
    except OSError as error:
        raise RefusedError(f"it cannot be read: {error.strerror}.") from error
    if len(found) > LARGEST:
        raise RefusedError(
            f"it has more than {LARGEST >> 20} MB: clear its outputs and try again."
        )
    return found


def read(path: Path, student: str) -> Submission:
    """Read a submitted notebook.

    Raises:
        RefusedError: it is no notebook; says what it is.
    """
    found = content(path)
    try:
        notebook = json.loads(found)
    except (ValueError, RecursionError) as error:
        raise RefusedError(
            f"it is not a notebook ({type(error).__name__}): in Jupyter or Colab, "
            "download it as .ipynb."
        ) from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise RefusedError(
            "it has no cells: expected a notebook of format 4. Open it in Jupyter, "
            "save it and try again."
        )
    sources = [
        _source(cell)
        for cell in notebook["cells"]
        if isinstance(cell, dict) and cell.get("cell_type") == "code"
    ]
    if len(sources) > MOST_CELLS or sum(map(len, sources)) > MOST_CODE:
        raise RefusedError(
            f"it has {len(sources):,} cells with {sum(map(len, sources)):,} characters "
            f"of code: at most {MOST_CELLS:,} and {MOST_CODE:,} are read. Hand in "
            "the answers without data and outputs that were pasted into cells."
        )
    named = _at(notebook, "metadata", "seq2seq", "exercise")
    return Submission(
        path,
        student,
        without_stubs([plain_python(source) for source in sources]),
        named if isinstance(named, str) else None,
        hashlib.sha256(found).hexdigest(),
    )


def _source(cell: dict[str, Any]) -> str:
    source = cell.get("source", "")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        source = "".join(source)
    return source if isinstance(source, str) else ""


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def plain_python(source: str) -> str:
    r"""A cell without the commands of Jupyter and the calls of the practice checks.

    >>> plain_python("%matplotlib inline\nx = 1\ngrader.check('q1'); y = 2")
    'pass\nx = 1\npass; y = 2'
    """
    if FOREIGN.match(source):
        return ""
    dedented = textwrap.dedent(source)
    at_margins = MAGIC.sub(lambda found: found[0] if found[1] else "pass", dedented)
    everywhere = MAGIC.sub(r"\1pass", dedented)
    for cell in (source, dedented, at_margins, everywhere):
        tree = _parsed(cell)
        if tree is not None:
            return _without(cell, tree, _practises)
    return everywhere  # running it will say what is wrong


def _without(
    source: str, tree: ast.Module, unwanted: Callable[[ast.stmt], bool]
) -> str:
    """The source with ``pass`` in place of some of its statements."""
    lines = [line.encode() for line in source.split("\n")]  # as columns are counted
    for statement in reversed(tree.body):  # so that earlier columns stay
        if not unwanted(statement):
            continue
        first, last = statement.lineno - 1, (statement.end_lineno or 1) - 1
        decorators = getattr(statement, "decorator_list", [])
        first = min([first, *(one.lineno - 1 for one in decorators)])
        begin = 0 if decorators else statement.col_offset
        rest = lines[last][statement.end_col_offset :]
        lines[first] = lines[first][:begin] + b"pass" + rest
        lines[first + 1 : last + 1] = [b""] * (last - first)
    return b"\n".join(lines).decode()


def _practises(statement: ast.stmt) -> bool:
    """Whether a statement is about the checks that a student runs alone."""
    match statement:
        case ast.Import(names) | ast.ImportFrom(names=names):
            module = getattr(statement, "module", None) or ""
            parts = [f"{module}.{alias.name}".split(".") for alias in names]
            return all(PRACTICE & {part[0], part[1], part[-1]} for part in parts)
        case ast.Assign(value=ast.Call() as call):
            return not PRACTICE.isdisjoint(_names(call.func))
        case ast.Expr():
            return not PRACTICE.isdisjoint(_names(statement))
    return False


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def definitions(source: str) -> str:
    """A cell with its imports, functions, classes and constants only."""
    tree = _parsed(source)
    return "" if tree is None else _without(source, tree, lambda s: not _defines(s))


def functions(source: str) -> set[str]:
    """The functions and classes that a cell defines; none if it is no Python."""
    tree = _parsed(source)
    return {s.name for s in tree.body if isinstance(s, DEFINING)} if tree else set()


def without_stubs(cells: list[str]) -> list[str]:
    """Cells without the given stubs of functions that are written somewhere else.

    >>> without_stubs(["def f(): return 1", "def f(): raise NotImplementedError"])
    ['def f(): return 1', 'pass']
    """
    trees = [_parsed(cell) for cell in cells]
    written = {
        statement.name
        for tree in trees
        if tree is not None
        for statement in tree.body
        if isinstance(statement, DEFINING) and not _is_stub(statement)
    }

    def unwanted(statement: ast.stmt) -> bool:
        return _is_stub(statement) and getattr(statement, "name", "") in written

    return [
        cell if tree is None else _without(cell, tree, unwanted)
        for cell, tree in zip(cells, trees, strict=True)
    ]


def _is_stub(statement: ast.stmt) -> bool:
    """Whether a function does nothing but to say that it is not written."""
    if not isinstance(statement, ast.FunctionDef):
        return False
    last = statement.body[-1]
    if not isinstance(last, ast.Raise) or last.exc is None:
        return False
    error = last.exc.func if isinstance(last.exc, ast.Call) else last.exc
    documented = len(statement.body) - (ast.get_docstring(statement) is not None)
    return ast.unparse(error) == NotImplementedError.__name__ and documented == 1


def _defines(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
        try:
            ast.literal_eval(statement.value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return False
        return True
    return isinstance(statement, DEFINING | ast.Import | ast.ImportFrom)


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def exercise_of(submission: Submission, known: dict[str, Exercise]) -> Exercise:
    """The exercise that a submission answers.

    What the metadata says counts. Without it, or if the answers are all to another
    exercise, the names of the functions do.

    Raises:
        RefusedError: it answers none, or it could be several.
    """
    names = {name for cell in submission.cells for name in functions(cell)}
    hits = {
        name: sum(f in names for q in e.questions for f in q.functions)
        for name, e in known.items()
    }
    best = [name for name, n in hits.items() if n and n == max(hits.values())]
    if submission.named in known and (hits[submission.named] or not best):
        return known[submission.named]
    if not best:
        raise RefusedError(
            "no exercise is recognised in it: none of its cells defines a function "
            "that an exercise asks for. Start from the exercise's own notebook."
        )
    if len(best) > 1:
        raise RefusedError(
            f"it could answer {' or '.join(best)}: say which with --exercise."
        )
    return known[best[0]]
