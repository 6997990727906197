"""What `make notebooks` stores and what `make check` refuses."""

import importlib.util
import itertools
import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

CI = Path(__file__).parents[2] / ".ci"


def load(name):
    specification = importlib.util.spec_from_file_location(name, CI / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


notebooks, address = load("notebooks"), load("address")
SETUP = address.read_address().setup_cell
FIGURE = """\
import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(1, 1))
plt.show()"""


def notebook_of(*cells):
    """A notebook with a title, the set-up cell, and these cells, as if they had run."""
    title = new_markdown_cell("# 1 A title")
    setup = new_code_cell(SETUP, metadata={"tags": address.SETUP_TAGS})
    notebook = new_notebook(cells=[title, setup, *cells])
    counts = itertools.count(1)
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        if cell.cell_type == "code":
            cell.execution_count = next(counts)
    return notebook


@pytest.fixture
def write(tmp_path):
    def write(*cells):
        path = tmp_path / "book" / "01_one.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(notebook_of(*cells), path)
        return path

    return write


def described(alt):
    return {"mystnb": {"image": {"alt": alt}}}


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


def printed(text, *, name="stdout", **options):
    return new_code_cell(
        "f()", outputs=[new_output("stream", text=text, name=name)], **options
    )


def shown(kind, value, **options):
    output = new_output("display_data", data={kind: value})
    return new_code_cell("f()", outputs=[output], **options)


ERROR = new_output("error", ename="KeyError", evalue="'a'", traceback=["/home/a/x.py"])


@pytest.mark.parametrize(
    "cell, problem",
    [
        (printed("no\n", name="stderr"), "cell 2: wrote to standard error: 'no'"),
        (new_code_cell("f()", outputs=[ERROR]), "cell 2: raised KeyError: 'a'"),
        (printed("/home/jane/x"), "path of this machine in the output: '/home/jane/x'"),
        (printed("C:\\Users\\jane"), "path of this machine"),
        (shown("text/plain", f"at {CI.parent}"), "path of this machine"),
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
