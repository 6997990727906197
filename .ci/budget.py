"""How long a page is, and how long it may be.

A *main page* is a chapter with a lab of the same name in ``book/labs``; the first page
counts as one, with upper bounds alone, once it states its time. What is older has no
bounds. What is counted:

- **words** of the Markdown cells: headings, tables, references and folded answers too,
  since readers read them. A formula or a piece of code in a line is one word; blocks of
  code, alternative texts, addresses of links and marks without a letter or a digit are
  none.
- **lines**: those of visible code that are not blank. Folded lines are counted apart;
  the set-up cell is not counted.
- **figures**: images in outputs and in the text.
- the **lead**: words, and visible lines of code, before the first figure.
- the **close**: words from ``## Summary`` on, but for folded answers and references.
- **seconds** of one core, as ``make times`` noted them.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from statistics import median

import nbformat
from folds import is_visible, tags_of
from nbformat import NotebookNode
from pages import book_of, page_name

WORDS_A_MINUTE = 180
LINES_A_MINUTE = 8  # of code, which one types or takes apart
STATED = re.compile(
    r"(?m)^About (?P<minutes>\d+) minutes to read, "
    r"(?P<seconds>\d+) seconds to run on one CPU core\.$"
)
FENCE = re.compile(r"(?ms)^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence)`*~* *$")
# Each becomes one word: formulas, whole or in a line, and code in a line.
ONE_WORD = re.compile(
    r"(?s)\$\$.+?\$\$|\\begin\{(?P<kind>\w+\*?)\}.*?\\end\{(?P=kind)\}"
    r"|(?<![\\\w])\$[^$\n]+\$|(?P<ticks>`+)(?!`)[^\n]+?(?<!`)(?P=ticks)(?!`)"
)
IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)|<(?:img|svg)\b[^>]*>")
UNREAD = re.compile(r"(?s)<!--.*?-->|</?[a-zA-Z][^<>]*>|(?<=\])\([^)]*\)")
WORD = re.compile(r"[^\s|]*\w[^\s|]*")
ANSWER = re.compile(r"(?s)<details.*?</details>")
CLOSE = re.compile(r"(?ms)^## Summary\b.*")
REFERENCES = re.compile(r"(?ms)^## References\b.*?(?=^## |\Z)")


class Form(Enum):
    """What kind of page a notebook is."""

    OLD = "old"
    INTRO = "intro"
    MAIN = "main"
    LAB = "lab"


PAGE = {Form.INTRO: "the first page", Form.MAIN: "a main page", Form.LAB: "a lab"}
# Of every count: what it is called, and the least and most on a main page. How long
# one cell may be is the same everywhere: see checks.py.
MAIN = {
    "words": ("words", 2000, 3200),
    "lines": ("visible lines of code", 150, 300),
    "cells": ("visible code cells", 0, 45),
    "median": ("lines in the median visible cell", 0, 8),
    "folded": ("folded lines of code", 0, 150),
    "figures": ("figures", 1, 8),
    "lead": ("words before the first figure", 0, 150),
    "lead_lines": ("visible lines of code before the first figure", 0, 0),
    "close": ("words from `## Summary` on", 0, 350),
    "seconds": ("seconds of one core", 0, 90),
}
BOUNDS = {
    Form.OLD: {},
    Form.INTRO: {name: (what, 0, most) for name, (what, _, most) in MAIN.items()},
    Form.MAIN: MAIN,
    Form.LAB: {"seconds": ("seconds of one core", 0, 40)},
}


@dataclass(frozen=True)
class Count:
    """The length of a page; what it does not have is None."""

    words: int
    lines: int
    cells: int
    median: float
    longest: int
    folded: int
    figures: int
    lead: int | None
    lead_lines: int | None
    close: int | None
    seconds: int | None

    @property
    def minutes(self) -> int:
        """How long it takes to read, in steps of five minutes."""
        exact = self.words / WORDS_A_MINUTE + self.lines / LINES_A_MINUTE
        return max(5, 5 * round(exact / 5))


def form_of(path: Path, notebook: NotebookNode) -> Form:
    """What kind of page this notebook is."""
    name = page_name(path)
    if name.startswith("labs/"):
        return Form.LAB
    if name == "intro":
        return Form.INTRO if stated(notebook) else Form.OLD
    has_lab = (book_of(path) / "labs" / f"{name}.ipynb").exists()
    return Form.MAIN if has_lab else Form.OLD


def prose(cells: Iterable[NotebookNode]) -> str:
    """The text of the Markdown cells, without blocks of code."""
    texts = (cell.source for cell in cells if cell.cell_type == "markdown")
    return FENCE.sub("", "\n\n".join(texts))


def words(text: str) -> int:
    """How many words a text has that a reader reads."""
    return len(WORD.findall(UNREAD.sub("", IMAGE.sub("", ONE_WORD.sub("x", text)))))


def code_lines(cell: NotebookNode) -> int:
    """The lines of a cell that are not blank."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def images(cell: NotebookNode) -> int:
    """How many figures a cell shows."""
    if cell.cell_type != "code":
        return len(IMAGE.findall(FENCE.sub("", cell.source)))
    kinds = (output.get("data", {}) for output in cell.outputs)
    return sum(any(k.startswith("image/") for k in data) for data in kinds)


def count(notebook: NotebookNode, seconds: int | None = None) -> Count:
    """Count a page.

    Args:
        notebook: with its outputs, where the figures are.
        seconds: for how long it keeps a core busy, if that is known.
    """
    cells = notebook.cells
    visible = [code_lines(cell) for cell in cells if is_visible(cell)]
    folded = {"hide-input", "remove-input"}
    figures = [images(cell) for cell in cells]
    lead = lead_lines = None
    if any(figures):
        first = next(n for n, number in enumerate(figures) if number)
        before = cells[:first]
        lead = words(prose(before))
        if cells[first].cell_type == "markdown":
            lead += words(IMAGE.split(FENCE.sub("", cells[first].source))[0])
        lead_lines = sum(code_lines(c) for c in cells[: first + 1] if is_visible(c))
    close = CLOSE.search(prose(cells))
    return Count(
        words=words(prose(cells)),
        lines=sum(visible),
        cells=len(visible),
        median=median(visible or [0]),
        longest=max(
            (c.source.count("\n") + 1 for c in cells if is_visible(c)), default=0
        ),
        folded=sum(
            code_lines(cell)
            for cell in cells
            if cell.cell_type == "code" and folded & tags_of(cell)
        ),
        figures=sum(figures),
        lead=lead,
        lead_lines=lead_lines,
        close=close and words(REFERENCES.sub("", ANSWER.sub("", close[0]))),
        seconds=seconds,
    )


def over(counted: Count, form: Form) -> list[str]:
    """The names of the counts that are out of bounds."""
    bounds = BOUNDS[form].items()
    values = (
        (name, getattr(counted, name), low, most) for name, (_, low, most) in bounds
    )
    return [n for n, v, low, most in values if v is not None and not low <= v <= most]


def budget_problems(counted: Count, form: Form) -> Iterator[str]:
    """Where a page is longer or shorter than its form allows."""
    for name in over(counted, form):
        what, least, most = BOUNDS[form][name]
        allowed = f"{least:,} to {most:,}" if least else f"at most {most:,}"
        yield f"{getattr(counted, name):,g} {what}: {PAGE[form]} has {allowed}"
    if form is Form.MAIN and counted.close is None:
        yield "no heading `## Summary`: the close begins there"


def noted_seconds(times: Path, path: Path) -> int | None:
    """For how long a page kept a core busy, if that was noted."""
    known = json.loads(times.read_text(encoding="utf-8")) if times.exists() else {}
    return known.get(page_name(path))


def in_steps(seconds: float) -> int:
    """Seconds rounded up to five."""
    return 5 * math.ceil(seconds / 5)


def stated(notebook: NotebookNode) -> list[tuple[int, int]]:
    """The minutes and seconds of every paragraph that states the time of the page."""
    found = STATED.findall(prose(notebook.cells))
    return [(int(minutes), int(seconds)) for minutes, seconds in found]


def timed(notebook: NotebookNode, seconds: int | None = None) -> NotebookNode:
    """A copy of the notebook whose stated time is right; seconds stay if not given."""
    notebook = nbformat.from_dict(notebook)
    minutes = count(notebook).minutes

    def right(found: re.Match[str]) -> str:
        known = found["seconds"] if seconds is None else seconds
        return (
            f"About {minutes} minutes to read, {known} seconds to run on one CPU core."
        )

    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = STATED.sub(right, cell.source)
    return notebook


def worth_stating(seconds: float, before: int | None) -> int | None:
    """The seconds to state after a run, or None if what is stated is good enough.

    Otherwise two runs of one page would often differ in their text.
    """
    if before is not None and abs(in_steps(seconds) - before) <= max(5, before / 5):
        return None
    return in_steps(seconds)


def table(rows: Iterable[tuple[str, Form, Count]]) -> str:
    """The counts of many pages, a page a line; ``!`` stands behind what is refused."""
    names = [*(field.name for field in fields(Count)), "minutes"]
    lines = [["page", "form", *(f"{name.replace('_', ' ')} " for name in names)]]
    for page, form, counted in rows:
        wrong = over(counted, form)
        values = {name: getattr(counted, name) for name in names}
        lines.append([page, form.value])
        for name, value in values.items():
            shown = "–" if value is None else f"{value:,g}"
            lines[-1].append(f"{shown}{'!' if name in wrong else ' '}")
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            text.ljust(width) if n < 2 else text.rjust(width)
            for n, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
