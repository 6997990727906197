"""Imports look backwards only, so that the library can be read from top to bottom."""

import ast
import re
from collections.abc import Iterator

import pytest
from library_sources import INSIDE, LIBRARY, MODULES, READING_ORDER, ROOMS, ROOT
from pages import notebooks


def imported(tree: ast.Module) -> Iterator[str]:
    """The full names of what a module imports, also inside its functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports hide where a name comes from"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_modules(tree: ast.Module) -> Iterator[str]:
    """The modules of the library that a module imports from."""
    for name in imported(tree):
        package, _, rest = name.partition(".")
        if package == LIBRARY.name:
            # What is imported is a module, or a name inside of one.
            yield rest if rest in MODULES else rest.rpartition(".")[0]


def test_every_module_has_its_place_in_the_reading_order():
    assert sorted(READING_ORDER) == sorted(MODULES)


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_uses_only_what_the_reader_has_met(module):
    place = READING_ORDER.index(module)
    later = [m for m in own_modules(MODULES[module]) if READING_ORDER.index(m) >= place]
    assert not later, f"{module} comes before {later}, which it imports"


def test_a_stranger_finds_few_rooms_and_few_files_in_the_hallway():
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    files = {path.stem for path in LIBRARY.glob("*.py")} - {"__init__", "__main__"}
    assert packages == set(INSIDE)
    assert packages | files | {"__main__"} == set(ROOMS)
    assert len(packages) <= 12
    assert len(files) <= 6


def rooms_of(text: str) -> set[str]:
    """The rooms that a script or a notebook imports from."""
    return set(re.findall(rf"(?:from|import) {LIBRARY.name}(?: import |\.)(\w+)", text))


def test_nothing_leans_on_grading_and_benches():
    apart = {"grading", "bench"}
    library = {
        (room, other)
        for module, tree in MODULES.items()
        for room in [module.partition(".")[0]]
        for name in own_modules(tree)
        for other in [name.partition(".")[0]]
        if other in apart - {room}
    }
    assert library <= {("cli", "grading")}
    files = [*notebooks(), *ROOT.glob(".ci/*.py")]
    users = {
        path.stem: rooms
        for path in files
        if (rooms := rooms_of(path.read_text(encoding="utf-8")) & apart)
    }
    appendices = {page: {"bench"} for page in ("growth", "scaling", "speed")}
    assert users == {**appendices, "exercises": {"grading"}}


@pytest.mark.parametrize(
    "package, only_user", [("matplotlib", "plotting"), ("IPython", "plotting")]
)
def test_one_module_alone_uses(package, only_user):
    users = {
        module.partition(".")[0]
        for module, tree in MODULES.items()
        if any(name.partition(".")[0] == package for name in imported(tree))
    }
    assert users <= {only_user}


def device_names(tree: ast.Module) -> Iterator[str]:
    """Devices that are chosen in the code, rather than compared with or passed in."""
    compared = {
        id(side)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for side in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "cuda":
            yield f".cuda in line {node.lineno}"
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.partition(":")[0] in {"cuda", "mps", "cpu"}
            and id(node) not in compared
        ):
            yield f"{node.value!r} in line {node.lineno}"


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"device"}))
def test_devices_are_chosen_in_one_place(module):
    assert list(device_names(MODULES[module])) == []


def test_the_one_place_is_seen_by_the_test_above():
    assert len(list(device_names(MODULES["device"]))) >= 3
