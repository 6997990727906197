"""The book where a GPU is what ``best_device`` returns."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from book_cells import cells_of, needed, reached, read_cell, run
from pages import notebooks, page_name

PROGRAM = Path(__file__).parents[1] / "book_cells.py"
PAGES = {page_name(path): path for path in notebooks()}
LOADS = {name: path for name, path in PAGES.items() if reached(cells_of(path))}


@pytest.mark.parametrize("page", LOADS)
def test_cells_run_on_it(page):
    # in a process of its own: the types of a page's own calls are not checked
    found = subprocess.run(
        [sys.executable, PROGRAM, LOADS[page]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not found.returncode, found.stderr[-3000:]
    ran = re.search(r"ran (\d+) of (\d+) on the device", found.stdout)
    assert 2 * int(ran[1]) >= int(ran[2]), found.stdout.splitlines()[-1]


def test_there_are_pages_that_load_something():
    assert LOADS


SOURCES = [
    "import torch\nunused = 1",
    "size = 3\ndef inputs():\n    return torch.ones(size)",
    "model = load('a name')",
    "x = inputs()",
    "print(unused)",
    "y = model(x)",
    "model = None",
    "print(model, y)",
    "print(model)",
]


def test_what_the_device_reaches_and_what_that_needs():
    cells = [read_cell(number, source) for number, source in enumerate(SOURCES)]
    there = reached(cells)
    assert [cell.number for cell in there] == [2, 5, 7]
    assert [cell.number for cell in needed(cells, there)] == [1, 2, 3, 5, 6, 7]


def test_what_depends_on_a_slow_cell_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "__main__", None)
    sources = ["a = 1", "b = a\nwhile True: pass", "c = b", "b = 2", "c = b"]
    cells = [read_cell(number, source) for number, source in enumerate(sources)]
    assert run(cells, [], seconds=0.05) == ([0, 3, 4], [1])
