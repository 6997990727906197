"""The form of a page: names, headings, outputs, and cards that ask to predict."""

import checks
import pytest
from budget import Form
from made_notebooks import described, notebook_of, page, printed, shown, tagged
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output


@pytest.mark.parametrize(
    "first, second",
    [
        ("x = 1", "x = 2"),
        ("x = 1", "y, (x, *z) = 1, (2, 3)"),
        ("x = 1", "x: int = 2"),
        ("x = 1", "print(x := 2)"),
        ("x = 1", "for i in range(3):\n    x = i"),
        ("x = 1", "with open('f') as f:\n    x = 2"),
        ("x = 1", "try:\n    pass\nexcept OSError:\n    x = 2"),
        ("x = 1", "if y:\n    pass\nelse:\n    x = 2"),
        ("x = 1", "%time x = 2\nx = 2"),
        ("x = 1", "%%time\nx = 2"),
        ("x = 1", "!ls\nx = !ls"),
        ("def x():\n    return 1", "class x:\n    y = 1"),
        ("import torch as x", "x = 1"),
        ("import torch as x", "import numpy as x"),
        ("from a import x", "from b import x"),
        ("from a import x", "def x(): return 1"),
    ],
)
def test_a_name_means_one_thing_on_a_main_page(first, second):
    cells = [new_code_cell(first), new_markdown_cell("And"), new_code_cell(second)]
    for form in (Form.MAIN, Form.INTRO):
        (found,) = checks.source_problems(page(*cells), form)
        assert found.startswith("cell 4: binds `x`, which cell 2 has bound: on a page")
    for form in (Form.LAB, Form.OLD):
        assert list(checks.source_problems(page(*cells), form)) == []
    cells[2].metadata.tags = ["remove-input"]  # only visible cells count
    assert list(checks.source_problems(page(*cells), Form.MAIN)) == []


@pytest.mark.parametrize(
    "first, second",
    [
        ("x = 1", "x += 1"),
        ("x = 1", "x[0] = 2\nx.y = 3"),
        ("x = 1", "x: int"),
        ("x = 1", "for x in range(3):\n    pass"),
        ("x = 1", "with open('f') as x:\n    pass"),
        ("x = 1", "y = [x for x in range(3)]"),
        ("x = 1", "def f(x):\n    x = 2\n    return x"),
        ("_, y = 1, 2", "_, z = 1, 2"),
        ("import torch as x", "import torch as x"),
        ("import a.b", "import a.c"),
        ("from a import x", "from a import x"),
        ("class x:\n    def f(self):\n        return 1", "class x: ..."),
        ("def x(y):\n    return y", 'def x(y):\n    """Fill in."""'),
        ("x = 1", "%%bash\nx=2"),
        ("x = 1", "x = await f("),  # not our trouble: it fails when it runs
    ],
)
def test_what_does_not_bind_a_name_again(first, second):
    cells = [new_code_cell(first), new_code_cell(second)]
    assert list(checks.source_problems(page(*cells), Form.MAIN)) == []


@pytest.mark.parametrize(
    "cells",
    [
        ["It is:\n\n## Next"],
        ["It is:\n## Next"],
        ["**It is:**", "## Next\n\nText"],
        ["It is:\n", "### Next"],
    ],
)
def test_a_colon_before_a_heading_announces_nothing(cells):
    notebook = page(*map(new_markdown_cell, cells))
    for form in (Form.MAIN, Form.INTRO, Form.LAB):
        assert list(checks.source_problems(notebook, form)) == [
            "cell 2: a colon before a heading: what it announces is missing"
        ]


@pytest.mark.parametrize(
    "cells",
    [
        ["It is:\n\n- this", "## Next"],
        ["It is:\n\n```python\nif x:\n\n# no heading\n```", "## Next"],
        ["It is:", "this"],
        ["It is:"],
    ],
)
def test_a_colon_before_what_it_announces_passes(cells):
    notebook = page(*map(new_markdown_cell, cells))
    assert list(checks.source_problems(notebook, Form.MAIN)) == []


LONG = "line\n" * 31


@pytest.mark.parametrize("form", [Form.MAIN, Form.INTRO, Form.LAB])
def test_a_long_output_is_folded(form):
    halves = printed("line\n" * 16)
    halves.outputs.append(new_output("display_data", data={"text/plain": "a\n" * 15}))
    table = shown("text/markdown", LONG)
    for cell in (printed(LONG), halves, shown("text/plain", LONG), table):
        (found,) = checks.output_problems(notebook_of(cell), form)
        assert found.startswith("cell 2: an open output of 31 lines: at most 30 may")
    for tag in ("hide-output", "remove-output", "scroll-output", "output_scroll"):
        cell = printed(LONG, metadata={"tags": [tag]})
        assert list(checks.output_problems(notebook_of(cell), form)) == []
    short = printed("line\n" * 30)
    image = shown("image/png", "", metadata=described("A map."))
    image.outputs[0].data["text/plain"] = LONG
    assert list(checks.output_problems(notebook_of(short, image), form)) == []
    assert list(checks.output_problems(notebook_of(printed(LONG)))) == []


def test_a_folded_output_is_there():
    notebook = notebook_of(tagged("f()", "hide-output"))
    (found,) = checks.output_problems(notebook, Form.LAB)
    assert found == "cell 2: tagged hide-output, but has no output"


CARD = """\
<div class="predict">

**Predict first.** How many?

- one
- two

<details><summary>Answer</summary>

Two, since $1 + 1 = 2$.

And more.

</details>

</div>"""


def answered(text, *tags):
    return [new_markdown_cell(text), new_markdown_cell("So:"), tagged("f()", *tags)]


@pytest.mark.parametrize("form", Form)
def test_a_card_has_one_form(form):
    right = page(*answered(CARD, "hide-output"))
    assert list(checks.source_problems(right, form)) == []
    for old, new in [
        ("**Predict first.**", "Predict first."),
        ('"predict">\n\n', '"predict">\n'),
        ("<details>", "<details open>"),
        ("Answer</summary>\n\n", "Answer</summary>\n"),
        ("Answer<", "Solution<"),
        ("\n\nAnd more.", "\n\n</details>\n\n<details>"),
        ("\n\n</div>", "\n</div>"),
        ("</div>", "</div>\n\nAnd text."),
        ("<div", "Text.\n\n<div"),
    ]:
        wrong = CARD.replace(old, new)
        assert wrong != CARD
        notebook = page(*answered(wrong, "hide-output"))
        (found,) = checks.source_problems(notebook, form)
        assert found.startswith(
            'cell 2: a card is a cell of its own: `<div class="pred'
        )


def test_what_answers_a_card_is_folded():
    (found,) = checks.source_problems(page(*answered(CARD)), Form.MAIN)
    assert found == "cell 2: cell 4 answers this card in the open: tag it hide-output"
    (found,) = checks.source_problems(page(new_markdown_cell(CARD)), Form.MAIN)
    assert found == "cell 2: no cell of code after this card answers it"


def test_on_a_main_page_a_question_without_a_card_is_none():
    bare = page(*answered("**Predict first.** How many?", "hide-output"))
    for form in (Form.MAIN, Form.INTRO):
        (found,) = checks.source_problems(bare, form)
        assert "a card is a cell of its own" in found
    for form in (Form.OLD, Form.LAB):
        assert list(checks.source_problems(bare, form)) == []
