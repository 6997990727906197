"""What a main page builds: whole classes, run at once, in the library's words."""

import ast
import dataclasses
import importlib
import inspect
import json
from functools import cache
from itertools import pairwise

import nbformat
import pytest
from folds import is_visible
from library_sources import ROOT

from seq2seq_lib.evaluation import blank_page
from seq2seq_lib.evaluation.blank_page.written import is_written
from seq2seq_lib.interface import ModelConfig

BUILT = {
    "01": "Vocabulary edit_distance",
    "02": "EncoderOutput LookupDecoder EncoderDecoder",
    "03": "RNNCell GRUCell LSTMCell RNNEncoder ConvEncoder",
    "04": "RNNDecoder Seq2Seq",
    "05": "beam_search",
    "06": "DotAttention AttentionDecoder",
    "07": "SelfAttention MultiHeadAttention",
    "08": "LayerNorm Residual",
    "09": "Sinusoids LearnedPositions rotate",
    "10": "FeedForward Embedding EncoderBlock DecoderBlock Transformer",
    "11": "CachedDecoder",
}
# chapters whose blank page has an entry in the library
FROM_MEMORY = set(BUILT) - {"02", "11"}
HOMES = ("interface", "models", "data", "metrics", "search")
# of classes that a configuration builds, its class
CONFIGS = {"Seq2Seq": "RNNSeq2Seq", "Transformer": "Transformer"}
CONFIGS |= {"CachedDecoder": "Transformer"}
PLAIN = {"Module", "Encoder", "Decoder", "ABC", "object"}

PAGES = {
    path.stem: path
    for path in sorted((ROOT / "book").glob("[01]*.ipynb"))
    if (ROOT / "book" / "labs" / path.name).exists()
}
TO_BUILD = [(page, name) for page in PAGES for name in BUILT.get(page[:2], "").split()]


@cache
def code_cells(path):
    """The code cells of a page and their trees; magics are left out."""
    notebook = nbformat.read(path, as_version=4)
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            lines = cell.source.splitlines(keepends=True)
            kept = [line for line in lines if not line.lstrip().startswith(("%", "!"))]
            try:
                found.append((cell, ast.parse("".join(kept))))
            except SyntaxError:  # what is left of the set-up cell
                found.append((cell, ast.parse("")))
    return found


def methods(definition):
    return {one.name for one in definition.body if isinstance(one, ast.FunctionDef)}


def is_empty(definition):
    """Whether a class or a function is a stub."""
    body = [one for one in definition.body if not isinstance(one, ast.Pass)]
    return all(
        isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
        for one in body
    )


def definition_of(cells, name):
    """The number of the cell that defines a name last, and the definition."""
    found = [
        (number, one)
        for number, (_, tree) in enumerate(cells)
        for one in tree.body
        if isinstance(one, ast.ClassDef | ast.FunctionDef)
        and one.name == name
        and not is_empty(one)
    ]
    assert found, f"the page does not define {name}"
    return found[-1]


def called(tree, name):
    """Whether a name is called, in a tree or in a list of statements."""
    statements = tree if isinstance(tree, list) else tree.body
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        for statement in statements
        for node in ast.walk(statement)
    )


def imports_from_the_library(tree):
    return {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").startswith("seq2seq_lib")
        for alias in node.names
    }


def library_object(name):
    """The library's class or function of a name, or None."""
    homes = (importlib.import_module(f"seq2seq_lib.{home}") for home in HOMES)
    return next((getattr(home, name) for home in homes if hasattr(home, name)), None)


def words_of(definition):
    """The words of a constructor, each with whether it may be left out.

    None if the class takes its constructor from another.
    """
    for one in definition.body:
        if isinstance(one, ast.FunctionDef) and one.name == "__init__":
            own = [*one.args.posonlyargs, *one.args.args][1:]
            given = len(own) - len(one.args.defaults)
            words = {word.arg: place >= given for place, word in enumerate(own)}
            only = zip(one.args.kwonlyargs, one.args.kw_defaults, strict=True)
            return words | {word.arg: default is not None for word, default in only}
    fields = [one for one in definition.body if isinstance(one, ast.AnnAssign)]
    return {one.target.id: one.value is not None for one in fields} or None


def library_words(subject):
    """The words of the library's constructor, each with whether it is optional."""
    _, *parameters = inspect.signature(subject.__init__).parameters.values()
    return {one.name: one.default is not one.empty for one in parameters}


def config_words(name):
    """The fields of the configuration that builds a class; their order is free."""
    fields = dataclasses.fields(ModelConfig.models[CONFIGS[name]])
    return {one.name: True for one in fields}


def complaint(own, wanted, *, ordered=True):
    """What is wrong with a page's words; empty if nothing is."""
    common = [word for word in own if word in wanted]
    missing = [word for word in wanted if not wanted[word] and word not in own]
    if missing:
        return f"{missing} missing"
    if ordered and common != [word for word in wanted if word in own]:
        return f"{common} in another order"
    extra = [word for word in own if word not in wanted]
    if list(own) != [*common, *extra]:
        return f"{extra} should come last"
    if required := [word for word in extra if not own[word]]:
        return f"{required}: a word that the library has not needs a default"
    return ""


@pytest.mark.parametrize("page, name", TO_BUILD)
def test_a_page_builds_it_whole(page, name):
    cells = code_cells(PAGES[page])
    number, definition = definition_of(cells, name)
    cell, _ = cells[number]
    assert is_visible(cell), f"{name} is built in a folded cell"
    if isinstance(definition, ast.FunctionDef):
        return
    bases = {ast.unparse(base).rpartition(".")[2] for base in definition.bases}
    own = methods(definition)
    if "Module" in bases or bases & {"Encoder", "Decoder"}:
        assert "__init__" in own, f"{name} has no __init__"
        assert own & {"forward", "step"}, f"{name} has neither forward nor step"
    elif bases - PLAIN:  # the rest comes from a class that was built before
        assert own & {"__init__", "forward", "step"}, f"{name} has no method"


@pytest.mark.parametrize("page, name", TO_BUILD)
def test_a_page_runs_what_it_builds_at_once(page, name):
    cells = code_cells(PAGES[page])
    number, definition = definition_of(cells, name)
    others = [one for one in cells[number][1].body if one is not definition]
    following = [tree for _, tree in cells[number + 1 : number + 2]]
    assert called(others, name) or any(called(tree, name) for tree in following), (
        f"{name} is not called in the cell that builds it, nor in the next"
    )


@pytest.mark.parametrize("page, name", TO_BUILD)
def test_a_page_does_not_import_what_it_builds_before(page, name):
    cells = code_cells(PAGES[page])
    number, _ = definition_of(cells, name)
    for cell, tree in cells[: number + 1]:
        assert name not in imports_from_the_library(tree), cell.source


@pytest.mark.parametrize("page, name", TO_BUILD)
def test_a_page_has_the_words_of_the_library(page, name):
    subject = library_object(name)
    _, definition = definition_of(code_cells(PAGES[page]), name)
    if not inspect.isclass(subject) or isinstance(definition, ast.FunctionDef):
        return
    own = words_of(definition)
    if own is None:
        return
    problem = complaint(own, library_words(subject))
    if problem and name in CONFIGS:
        problem = complaint(own, config_words(name), ordered=False)
    assert not problem, f"{name}({', '.join(own)}): {problem}"


def blank_cells(path):
    """The cells that call the checker, each with the names that it is given."""
    for cell, tree in code_cells(path):
        names = [
            node.args[0].id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "blank_page"
            and isinstance(node.args[0], ast.Name)
        ]
        if names:
            yield cell, names


def built_on(path):
    """All versions of what a page defines, by name, without running anything else."""
    space, found = {"__name__": "page"}, {}
    for _, tree in code_cells(path):
        for one in tree.body:
            if isinstance(one, ast.Assign) and not is_literal(one.value):
                continue
            if isinstance(one, ast.Import | ast.ImportFrom | ast.Assign):
                run(one, space)
            elif isinstance(one, ast.ClassDef | ast.FunctionDef):
                run(one, space)
                found.setdefault(one.name, []).append(space.get(one.name))
    return found


def is_literal(node):
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True


def run(statement, space):
    module = ast.Module([statement], type_ignores=[])
    try:
        exec(compile(module, "page", "exec"), space)
    except NameError:  # needs what only a run of the page has
        space.pop(getattr(statement, "name", None), None)


def test_a_page_asks_for_something_from_memory():
    without = {
        page
        for page in PAGES
        if page[:2] in FROM_MEMORY and not list(blank_cells(PAGES[page]))
    }
    assert without == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_blank_page_is_stored_as_not_written_yet(page):
    for cell, names in blank_cells(PAGES[page]):
        printed = "".join(
            output.text for output in cell.outputs if output.output_type == "stream"
        )
        assert printed == "not written yet\n" * len(names)


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_builds_fills_its_blank_page(page, capsys):
    names = [name for _, names in blank_cells(PAGES[page]) for name in names]
    if not names:
        return
    found = built_on(PAGES[page])
    for name in names:
        written = [one for one in found[name] if one and is_written(one)]
        assert written, f"the page has nothing but a stub of {name}"
        blank_page(written[-1])
        assert capsys.readouterr().out == "right\n", name


LIBRARY = {"width": False, "heads": False, "dropout": True, "rotary": True}


@pytest.mark.parametrize(
    "head, problem",
    [
        ("width, heads", ""),
        ("width, heads, dropout=0.1, scale=True", ""),
        ("width, heads=2, scale=True", ""),
        ("heads, width", "['heads', 'width'] in another order"),
        ("width", "['heads'] missing"),
        ("width, scale, heads", "['scale'] should come last"),
        (
            "width, heads, scale",
            "['scale']: a word that the library has not needs a default",
        ),
    ],
)
def test_words_are_compared(head, problem):
    source = f"class One:\n    def __init__(self, {head}): ..."
    (definition,) = ast.parse(source).body
    assert complaint(words_of(definition), LIBRARY) == problem


def page_of(tmp_path, *sources):
    path = tmp_path / "page.ipynb"
    cells = [
        {"cell_type": "code", "metadata": {}, "source": source, "outputs": []}
        | {"execution_count": None, "id": str(number)}
        for number, source in enumerate(sources)
    ]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), encoding="utf-8")
    return path


GOOD = [
    "%pip install x\nimport torch\nfrom torch import nn",
    """class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()

    def forward(self, x):
        return x""",
    "print(Layer(3))",
    "class Layer(nn.Module): ...\n\n\nblank_page(Layer)",
]


def test_definitions_and_calls_are_found(tmp_path):
    cells = code_cells(page_of(tmp_path, *GOOD))
    number, definition = definition_of(cells, "Layer")
    assert number == 1
    assert methods(definition) == {"__init__", "forward"}
    assert [called(tree, "Layer") for _, tree in cells] == [False, False, True, False]
    path = tmp_path / "page.ipynb"
    assert [names for _, names in blank_cells(path)] == [["Layer"]]
    assert [is_written(one) for one in built_on(path)["Layer"]] == [True, False]


def test_every_number_has_its_chapter():
    numbers = sorted(path.name[:2] for path in (ROOT / "book").glob("[01]*.ipynb"))
    assert all(before < after for before, after in pairwise(numbers))
    assert set(BUILT) <= set(numbers)
