"""Runs the cells of a notebook that what is loaded onto the default device reaches.

``book_cells.py NOTEBOOK`` makes the emulated device the default and runs those cells
and all that they need. A cell that takes too long is left out, and with it whatever
depends on it. The last line says how many of them ran and which were too slow.
"""

import ast
import linecache
import signal
import sys
import types
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

CHOOSES = {"load", "load_model", "open_model", "best_device"}
SECONDS = 12  # of a cell, on the processor: that may be busy with other things


@dataclass
class Cell:
    """A code cell.

    Attributes:
        number: its place in the notebook.
        source: its text.
        reads: names that it uses, also inside of its functions.
        writes: names that it binds, but for imports.
        chooses: whether something is put on the default device.
    """

    number: int
    source: str
    reads: set[str]
    writes: set[str]
    chooses: bool


def read_cell(number: int, source: str) -> Cell:
    """Find out what a cell needs and gives."""
    tree = ast.parse(source)
    reads, writes = set(), set()
    follow(tree.body, reads, writes)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {getattr(c, "attr", getattr(c, "id", "")) for c in calls}
    imports = {name for line in imports_of(tree) for name in names(line, ast.alias)}
    chooses = not called.isdisjoint(CHOOSES)
    return Cell(number, source, reads, writes - imports, chooses)


def follow(statements: list[ast.stmt], reads: set[str], writes: set[str]) -> None:
    """Walk along statements; a name that is bound before it is read is no need."""
    for one in statements:
        match one:
            case ast.For():
                reads |= used(one.iter) - writes
                writes |= names(one.target, ast.Store)
                follow([*one.body, *one.orelse], reads, writes)
            case ast.With():
                for item in one.items:
                    reads |= used(item.context_expr) - writes
                    writes |= names(item, ast.Store)
                follow(one.body, reads, writes)
            case ast.FunctionDef() | ast.ClassDef():
                reads |= used(one) - names(one, ast.Store) - writes
                writes.add(one.name)
            case _:
                reads |= used(one) - writes
                writes |= names(one, ast.Store)


def names(node: ast.AST, kind: type) -> set[str]:
    """All names in it that are read, or stored, or imported."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.alias) and kind is ast.alias:
            found.add(one.asname or one.name.partition(".")[0])
        elif isinstance(one, ast.Name) and isinstance(one.ctx, kind):
            found.add(one.id)
    return found


def used(node: ast.AST) -> set[str]:
    """Names that it reads and does not bind itself in an inner scope."""
    inner = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    for one in ast.walk(node):
        if isinstance(one, ast.comprehension):
            inner |= names(one.target, ast.Store)
    return names(node, ast.Load) - inner


def imports_of(tree: ast.Module) -> list[ast.stmt]:
    """The imports at the top of a cell, which cost little."""
    return [s for s in tree.body if isinstance(s, ast.Import | ast.ImportFrom)]


def cells_of(path: Path) -> list[Cell]:
    """The code cells of a notebook that are plain Python and raise nothing."""
    import nbformat

    left_out = {"setup", "raises-exception"}
    return [
        read_cell(number, cell.source)
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells)
        if cell.cell_type == "code"
        and left_out.isdisjoint(cell.metadata.get("tags", ()))
        and not any(line.startswith(("%", "!")) for line in cell.source.splitlines())
    ]


def reached(cells: list[Cell]) -> list[Cell]:
    """The cells that the default device reaches, in order."""
    there, found = set(), []
    for cell in cells:
        if cell.chooses or cell.reads & there:
            found.append(cell)
            there |= cell.writes
        else:
            there -= cell.writes
    return found


def needed(cells: list[Cell], wanted: list[Cell]) -> list[Cell]:
    """These cells and whatever binds the names that they read, in order."""
    found = {cell.number: cell for cell in wanted}
    waiting = list(wanted)
    for cell in waiting:  # which grows
        before = [other for other in reversed(cells) if other.number < cell.number]
        for name in cell.reads:
            last = next((other for other in before if name in other.writes), None)
            if last and last.number not in found:
                found[last.number] = last
                waiting.append(last)
    return [found[number] for number in sorted(found)]


class TooSlow(BaseException):
    """Not an ``Exception``, which a cell could catch."""


@contextmanager
def at_most(seconds: float):
    """Stop what takes longer than this on the processor."""

    def stop(*_):
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(cells: list[Cell], imports: list[str], seconds: float = SECONDS):
    """Run cells one after the other.

    Args:
        cells: in order.
        imports: lines to begin with.
        seconds: what a cell may take.

    Returns:
        the numbers of the cells that ran, and of those that were too slow.
    """
    page = types.ModuleType("__main__")
    sys.modules["__main__"] = page  # where classes of the page are looked for
    exec("\n".join(imports), page.__dict__)
    missing, done, slow = set(), [], []
    for cell in cells:
        if cell.reads & missing:
            missing |= cell.writes
            continue
        name = f"cell {cell.number}"
        lines = cell.source.splitlines(keepends=True)
        linecache.cache[name] = (len(cell.source), None, lines, name)
        code = compile(cell.source, name, "exec")
        try:
            with at_most(seconds):
                exec(code, page.__dict__)
        except TooSlow:
            slow.append(cell.number)
            missing |= cell.writes
        else:
            done.append(cell.number)
            missing -= cell.writes
    return done, slow


def main(path: Path) -> None:
    """Run what the device reaches in one notebook."""
    import matplotlib as mpl
    import pytest
    from emulated_device import DEVICE
    from emulated_kernels import install

    from seq2seq_lib import device

    mpl.use("agg")
    warnings.simplefilter("ignore")
    install(pytest.MonkeyPatch())
    device.devices = lambda: [DEVICE]
    cells = cells_of(path)
    there = reached(cells)
    trees = [ast.parse(cell.source) for cell in cells]
    lines = [ast.unparse(line) for tree in trees for line in imports_of(tree)]
    done, slow = run(needed(cells, there), lines)
    count = sum(cell.number in done for cell in there)
    sys.stdout.write(f"\nran {count} of {len(there)} on the device, too slow: {slow}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
