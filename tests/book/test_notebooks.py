"""What `make notebooks` stores and what `make check` refuses."""

import json
import re

import address
import checks
import nbformat
import notebooks
import pytest
from budget import Form
from made_notebooks import (
    SETUP,
    described,
    notebook_of,
    page,
    printed,
    shown,
    tagged,
)
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

FIGURE = """\
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(1, 1))
plt.show()"""


def test_what_is_stored_is_stored_again(write):
    path = write(
        new_code_cell("print('one')\nprint('two')", metadata={"scrolled": True}),
        new_code_cell("6 * 7"),
        new_code_cell(FIGURE, metadata=described("An empty plot.")),
        new_code_cell("from pathlib import Path\n\nprint(Path.cwd().name)"),
        new_code_cell("from tqdm import tqdm\n\nfor _ in tqdm(range(3)):\n    pass"),
        new_code_cell("int('x')", metadata={"tags": ["raises-exception"]}),
    )
    assert notebooks.stored(path) == []
    first = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    setup, prints, answer, figure, directory, bar, error = notebook.cells[1:]

    assert [cell.execution_count for cell in notebook.cells[1:]] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
    ]
    assert setup.outputs == bar.outputs == []
    assert prints.outputs == [new_output("stream", text="one\ntwo\n")]
    assert prints.metadata == {}
    assert answer.outputs[0].data == {"text/plain": "42"}
    assert figure.outputs[0].data.keys() == {"image/png", "text/plain"}
    assert directory.outputs[0].text == "book\n"
    assert error.outputs[0].traceback == [
        "ValueError: invalid literal for int() with base 10: 'x'"
    ]
    assert notebook.metadata.language_info == {
        "name": "python",
        "pygments_lexer": "ipython3",
    }

    assert notebooks.checked(path) == []
    assert notebooks.stored(path) == []
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    "source, problem",
    [
        ("1 / 0", "ZeroDivisionError"),
        (
            "import warnings\n\nwarnings.warn('old')",
            "standard error: .*UserWarning: old",
        ),
    ],
)
def test_a_failing_notebook_is_left_as_it_was(write, source, problem):
    path = write(new_code_cell("1 + 1"), new_code_cell(source))
    before = path.read_bytes()
    assert re.search(problem, " ".join(notebooks.stored(path)))
    assert path.read_bytes() == before


def test_the_set_up_cell_installs_the_release_where_the_library_is_missing(tmp_path):
    pretend = """\
import importlib.util

importlib.util.find_spec = lambda name: None
get_ipython().register_magic_function(print, magic_name="pip")"""
    other = "os.environ['SEQ2SEQ_SOURCE'] = 'file:///elsewhere'"
    cells = [new_code_cell(source) for source in (pretend, SETUP, other, SETUP)]
    notebook = notebooks.executed(new_notebook(cells=cells), tmp_path)
    place = address.read_address()
    release = f"git+{place.url}@v{place.version}"
    assert [cell.outputs[0].text for cell in notebook.cells[1::2]] == [
        f'install -q "seq2seq_lib[course] @ {source}"\n'
        for source in (release, "file:///elsewhere")
    ]


def test_running_times_are_noted_in_steps(write, tmp_path):
    path, times = write(new_code_cell("sum(range(1_000))")), tmp_path / "times.json"
    times.write_text('{"00_gone": 5}')
    assert notebooks.stored(path, times) == []
    (name, seconds), *others = json.loads(times.read_text()).items()
    assert (name, others) == ("01_one", [])
    assert seconds > 0
    assert seconds % 5 == 0

    times.unlink()
    (problem,) = notebooks.stored(write(new_code_cell("1 / 0")), times)
    assert "ZeroDivisionError" in problem
    assert not times.exists()


ERROR = new_output("error", ename="KeyError", evalue="'a'", traceback=["/home/a/x.py"])


@pytest.mark.parametrize(
    "cell, problem",
    [
        (printed("no\n", name="stderr"), "cell 2: wrote to standard error: 'no'"),
        (new_code_cell("f()", outputs=[ERROR]), "cell 2: raised KeyError: 'a'"),
        (printed("/home/jane/x"), "path of this machine in the output: '/home/jane/x'"),
        (printed("C:\\Users\\jane"), "path of this machine"),
        (shown("text/plain", f"at {notebooks.ROOT}"), "path of this machine"),
        (shown("text/plain", "<object at 0x7f00a1b2c3>"), "address in memory"),
        (shown("image/png", ""), "an image without alt text"),
        (shown("image/png", "", metadata=described(" ")), "an image without alt text"),
        (shown("image/png", "", metadata=described("a.png")), "is a file name"),
        (new_markdown_cell("![](a.svg)"), "an image without alt text"),
        (new_markdown_cell("![a.svg](a.svg)"), "is a file name"),
        (new_markdown_cell("It is Simply so."), "filler word 'Simply'"),
        (new_markdown_cell("```{note}\nno\n```"), "'```{note}' is raw text"),
        (new_markdown_cell("See\n:::{figure} a.png\n:::"), "':::{figure}' is raw text"),
        (new_markdown_cell("See {ref}`a`."), "'{ref}`' is raw text"),
        (new_code_cell("\n" * 35), "36 lines"),
        (new_code_cell("show(f)\nassert f()"), "shows no source"),
    ],
)
def test_what_would_surprise_a_reader_is_named(cell, problem):
    (found,) = notebooks.problems(notebook_of(cell))
    assert problem in found


@pytest.mark.parametrize(
    "cell",
    [
        printed("data/home/x and 0x1f\n"),
        shown("image/png", "", metadata=described("Error grows with length.")),
        new_code_cell("f()", outputs=[ERROR], metadata={"tags": ["raises-exception"]}),
        new_markdown_cell("![A line.](a.svg) in $\\{a\\}$ and `{a}`, ```{}```"),
        new_markdown_cell("```python\nf({1: 2})\n```"),
        new_code_cell("\n" * 34),
    ],
)
def test_what_surprises_nobody_passes(cell):
    assert list(notebooks.problems(notebook_of(cell))) == []


def test_counts_and_the_set_up_cell_are_checked():
    notebook = notebook_of(new_code_cell("f()"))
    notebook.cells[2].execution_count = 3
    (found,) = notebooks.problems(notebook)
    assert "counts are [1, 3], not 1 to 2" in found
    del notebook.cells[1]
    found, _ = notebooks.problems(notebook)
    assert "the first code cell is not the set-up cell" in found


def test_metadata_of_an_editor_is_named(write):
    path = write()
    notebook = nbformat.read(path, as_version=4)
    path.write_text(notebooks.text_of(notebooks.cleaned(notebook)), encoding="utf-8")
    assert notebooks.checked(path) == []
    notebook.cells[1].metadata["collapsed"] = False
    path.write_text(notebooks.text_of(notebook), encoding="utf-8")
    (found,) = notebooks.checked(path)
    assert "metadata of an editor" in found


def folded(cell):
    """The cell's metadata in a stored notebook, but for its tags."""
    notebook = notebooks.cleaned(notebook_of(cell))
    nbformat.validate(notebook)
    return {k: v for k, v in notebook.cells[2].metadata.items() if k != "tags"}


TITLED = "# @title Draw the weights\nf()"
BOTH = {"jupyter": {"source_hidden": True, "outputs_hidden": True}}
IN_JUPYTER = {"jupyter": {"source_hidden": True}, "cellView": "form"}


def prompts(text, **more):
    names = ("code_prompt_show", "code_prompt_hide")
    return more | {
        n: f"{v}{text}" for n, v in zip(names, ("Show", "Hide"), strict=True)
    }


def test_one_tag_folds_code_everywhere():
    assert folded(tagged(TITLED, "hide-input", **described("A map."))) == {
        "mystnb": prompts(": Draw the weights", image={"alt": "A map."}),
        **IN_JUPYTER,
    }


def test_one_tag_folds_an_output_everywhere():
    assert folded(tagged("f()", "hide-output")) == {
        "mystnb": prompts(" the output"),
        "jupyter": {"outputs_hidden": True},
        "collapsed": True,
    }


def test_code_and_output_are_folded_apart():
    assert folded(tagged(TITLED, "hide-input", "hide-output")) == {
        "mystnb": prompts(" the {type}: Draw the weights"),
        "collapsed": True,
        **IN_JUPYTER,
        **BOTH,
    }


def test_without_the_tag_a_fold_opens():
    stale = {**IN_JUPYTER, **BOTH, "collapsed": True, "mystnb": prompts(": Old")}
    assert folded(tagged("f()", **stale)) == {}
    assert folded(tagged("f()", "hide-input", **stale)) == {}  # nothing would name it
    stale["mystnb"]["image"] = {"alt": "A map."}
    assert folded(tagged("f()", **stale)) == described("A map.")


@pytest.mark.parametrize(
    "cell, problem",
    [
        (tagged("f()", "hide-input"), "folded code without a title"),
        (tagged("\n# @title Draw\nf()", "hide-input"), "folded code without a title"),
        (tagged("#@title Draw\nf()", "hide-input"), "folded code without a title"),
        (tagged("# @title\nf()", "hide-input"), "folded code without a title"),
        (tagged(TITLED), "a title over visible code"),
        (tagged("f()", "hide-cell"), "tagged hide-cell"),
    ],
)
def test_a_fold_needs_its_title(cell, problem):
    for form in Form:
        found = list(checks.source_problems(page(cell), form))
        if form is Form.OLD:
            assert found == []
        else:
            assert [problem in one for one in found] == [True]


@pytest.mark.parametrize("form", [Form.MAIN, Form.INTRO, Form.LAB])
def test_folds_with_titles_pass(form):
    cells = [tagged(TITLED, "hide-input"), tagged(TITLED, "remove-input")]
    assert list(checks.source_problems(page(*cells), form)) == []


def test_folds_that_disagree_with_the_tags_are_named_and_tidied(write):
    path = write(tagged(TITLED, "hide-input"))
    (found,) = notebooks.checked(path)
    assert "folds that are not those of its tags (cells [2])" in found
    assert notebooks.tidied(path) == []
    assert notebooks.checked(path) == []
    (cell,) = nbformat.read(path, as_version=4).cells[2:]
    assert cell.metadata.cellView == "form"
    assert cell.execution_count == 2


def test_what_needs_no_run_is_named_before_the_run(write, tmp_path):
    ran = tmp_path / "ran"
    source = f"from pathlib import Path\n\nPath({str(ran)!r}).touch()"
    path = write(new_code_cell(source), tagged("1", "hide-input"), name="labs/01_one")
    (found,) = notebooks.stored(path)
    assert "cell 3: folded code without a title" in found
    assert not ran.exists()
