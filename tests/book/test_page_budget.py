"""How long a page is, how long it may be, and the time that it states."""

import sys
from dataclasses import replace

import budget
import checks
import nbformat
import notebooks
import pytest
from budget import Form
from made_notebooks import TIME, described, notebook_of, shown
from nbformat.v4 import new_code_cell, new_markdown_cell


def test_what_kind_of_page_a_notebook_is(write):
    def form(name, *cells):
        path = write(*cells, name=name)
        return budget.form_of(path, nbformat.read(path, as_version=4))

    assert form("01_one") is Form.OLD
    assert form("labs/01_one") is Form.LAB
    assert form("01_one") is Form.MAIN
    assert form("02_two") is Form.OLD
    assert form("intro") is Form.OLD
    assert form("intro", new_markdown_cell(TIME)) is Form.INTRO


@pytest.mark.parametrize(
    "text, number",
    [
        ("## Two words", 2),
        ("One `f(a, b)` and $a + b$, or $$a\n+ b$$-like.", 6),
        ("```python\nx = 1\n```\n\nAfter\n\n~~~\nx\n~~~\n\nall.", 2),
        ("[A link](https://example.org/a) – and ![alt text](a.svg) more.", 4),
        ("| a | b |\n|---|:-:|\n| 1 | two |", 4),
        ("<details><summary>A question?</summary>\n\nYes.\n\n</details>", 3),
        ("- a\n- **b**\n1. *c* <!-- not this -->", 4),
        ("", 0),
    ],
)
def test_words_are_what_readers_read(text, number):
    assert budget.words(budget.prose([new_markdown_cell(text)])) == number


CLOSE = """\
## Summary

Three words here.

<details><summary>Why?</summary>

Folded.

</details>

## References

Not counted."""


def test_a_page_is_counted():
    figure = shown("image/png", "", metadata=described("A map."))
    figure.source = "# @title Draw\n\nf()"
    figure.metadata.tags = ["hide-input"]
    cells = [new_markdown_cell("Two words."), figure, new_code_cell("a = 1\n\nb = 2")]
    cells += [new_code_cell("c"), new_markdown_cell(CLOSE)]
    assert budget.count(notebook_of(*cells), 25) == budget.Count(
        words=5 + 9,
        lines=3,
        cells=2,
        median=1.5,
        longest=3,
        folded=2,
        figures=1,
        lead=5,
        lead_lines=0,
        close=4,
        seconds=25,
    )


def test_what_stands_before_the_first_figure_is_counted():
    drawing = shown("image/png", "", metadata=described("A map."))
    found = budget.count(notebook_of(new_code_cell("a"), drawing))
    assert (found.lead, found.lead_lines) == (
        3,
        2,
    )  # the figure's own code is seen first
    picture = new_markdown_cell("One word ![A map.](a.svg) and more.")
    assert budget.count(notebook_of(picture, drawing)).lead == 5
    assert budget.count(notebook_of()).lead is None


GOOD = budget.Count(
    words=2000,
    lines=150,
    cells=45,
    median=8,
    longest=35,
    folded=150,
    figures=1,
    lead=150,
    lead_lines=0,
    close=350,
    seconds=90,
)


def problems_of(form=Form.MAIN, **changed):
    return list(budget.budget_problems(replace(GOOD, **changed), form))


@pytest.mark.parametrize(
    "changed, problem",
    [
        ({"words": 1999}, "1,999 words: a main page has 2,000 to 3,200"),
        ({"words": 3201}, "3,201 words: a main page has 2,000 to 3,200"),
        ({"lines": 149}, "149 visible lines of code: a main page has 150 to 300"),
        ({"lines": 301}, "301 visible lines of code: a main page has 150 to 300"),
        ({"cells": 46}, "46 visible code cells: a main page has at most 45"),
        ({"median": 8.5}, "8.5 lines in the median visible cell: a main page has at"),
        ({"folded": 151}, "151 folded lines of code: a main page has at most 150"),
        ({"figures": 9}, "9 figures: a main page has 1 to 8"),
        ({"figures": 0, "lead": None}, "0 figures: a main page has 1 to 8"),
        (
            {"lead": 151},
            "151 words before the first figure: a main page has at most 150",
        ),
        ({"lead_lines": 1}, "1 visible lines of code before the first figure: a main"),
        ({"close": 351}, "351 words from `## Summary` on: a main page has at most 350"),
        ({"close": None}, "no heading `## Summary`: the close begins there"),
        ({"seconds": 95}, "95 seconds of one core: a main page has at most 90"),
    ],
)
def test_a_page_out_of_its_budget_is_refused(changed, problem):
    (found,) = problems_of(**changed)
    assert found.startswith(problem)
    assert problems_of(Form.OLD, **changed) == []


def test_a_page_within_its_budget_passes():
    assert problems_of() == problems_of(words=3200, lines=300, figures=8) == []
    assert problems_of(seconds=None, cells=1, median=1, folded=0, lead=0) == []


def test_the_first_page_has_upper_bounds_alone():
    assert problems_of(Form.INTRO, words=0, lines=0, figures=0, close=None) == []
    (found,) = problems_of(Form.INTRO, words=3201)
    assert found == "3,201 words: the first page has at most 3,200"


def test_a_lab_is_bounded_in_time_alone():
    long = {"words": 9000, "lines": 900, "cells": 99, "figures": 30, "close": None}
    assert problems_of(Form.LAB, **long, seconds=40) == []
    (found,) = problems_of(Form.LAB, **long, seconds=45)
    assert found == "45 seconds of one core: a lab has at most 40"


def test_the_budget_is_checked_with_the_time_that_was_noted(write, tmp_path):
    write(name="labs/01_one")
    path, times = write(new_markdown_cell(TIME)), tmp_path / "times.json"
    times.write_text('{"01_one": 95}')
    found = notebooks.checked(path, times)
    assert "95 seconds of one core: a main page has at most 90" in found
    assert any(problem.startswith("16 words") for problem in found)


def test_too_short_a_page_is_stored_and_named(write, capsys):
    write(name="labs/01_one")
    path = write(new_code_cell("6 * 7"), new_markdown_cell(TIME))
    assert notebooks.stored(path) == []
    assert "stored, but --check refuses 16 words: a main" in capsys.readouterr().out
    assert (
        nbformat.read(path, as_version=4).cells[2].outputs[0].data["text/plain"] == "42"
    )


def test_the_stated_time_is_put_right(write, tmp_path):
    stale = "About 90 minutes to read, 900 seconds to run on one CPU core."
    long = "word " * 1800 + "\n" + "1\n" * 4  # ten minutes
    path = write(new_markdown_cell(f"Before.\n\n{stale}\n\n{long}"), name="labs/01_one")
    assert any("another time than 10 minutes" in p for p in notebooks.checked(path))
    notebooks.tidied(path)
    assert notebooks.checked(path) == []
    assert "About 10 minutes to read, 900 seconds" in path.read_text("utf-8")

    assert notebooks.stored(path) == []
    first = path.read_text("utf-8")
    assert "About 10 minutes to read, 5 seconds to run on one CPU core." in first
    assert notebooks.checked(path) == []
    assert notebooks.stored(path, tmp_path / "times.json") == []
    assert path.read_text("utf-8") == first


@pytest.mark.parametrize(
    "measured, before, after",
    [
        (61, None, 65),
        (61, 60, None),  # good enough: 65 is within a fifth of 60
        (70, 60, None),
        (71, 60, 75),
        (44, 60, 45),
        (6, 5, None),
        (11, 5, 15),
    ],
)
def test_seconds_are_stated_anew_if_they_have_changed(measured, before, after):
    assert budget.worth_stating(measured, before) == after


def test_minutes_are_those_of_words_and_of_code():
    assert replace(GOOD, words=0, lines=0).minutes == 5
    assert replace(GOOD, words=180 * 12, lines=8 * 6).minutes == 20
    assert replace(GOOD, words=180 * 12, lines=8 * 11).minutes == 25


@pytest.mark.parametrize("text", ["About 5 minutes to read.", f"{TIME}\n\n{TIME}", ""])
def test_a_main_page_states_its_time_once(text):
    notebook = notebook_of(new_markdown_cell(text))
    (found,) = checks.source_problems(notebook, Form.MAIN)
    assert "no paragraph, or more than one, that is `About 30 minutes" in found
    for form in (Form.OLD, Form.INTRO, Form.LAB):
        assert list(checks.source_problems(notebook, form)) == []


def test_lengths_are_printed_as_a_table(write, capsys, monkeypatch):
    lab, main = write(name="labs/01_one"), write(new_markdown_cell(TIME))
    old = write(name="02_two")
    monkeypatch.setattr(
        sys, "argv", ["notebooks.py", "--count", *map(str, (main, old, lab))]
    )
    assert notebooks.main() == 0
    head, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert head[:4] == ["page", "form", "words", "lines"]
    assert head[-1] == "minutes"
    assert [row[:3] for row in rows] == [
        ["01_one", "main", "16!"],
        ["02_two", "old", "3"],
        ["labs/01_one", "lab", "3"],
    ]
