"""The source that a chapter shows is the library's, and can be read on any page."""

import ast
import functools
import inspect
import re
import sys
import textwrap
from dataclasses import dataclass
from html import unescape

import pytest
import torch

from seq2seq_lib import interface, plotting, search
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.plotting.notebook import COLOURS, DARK_PAGES, Source, show
from seq2seq_lib.seeds import generator


# fmt: off
class Example:
    """What the class means.

    Attributes:
        width: of something.
    """

    width: int = 3  # why three

    def method(self, word: str) -> str:
        """What the method
means, badly indented.
        """

        # why this is so
        text = """a string
        that is no docstring"""
        return word + text

    async def wait(self) -> None:
        "One line."
        await self.sleep()

    def empty(self) -> int:  # a comment here
        """Only a docstring."""

    def abstract(
        self, word: str
    ) -> str:
        """Only a docstring,

        of several lines.
        """

    def short(self): "é"

    def both(self): "Stays."; return 1  # noqa: E702

    @property
    def half(self) -> float:
        """A property."""
        return self.width / 2

    @functools.cached_property
    def third(self) -> float:
        """A cached one."""
        return self.width / 3

    @classmethod
    def make(cls) -> "Example":
        """A class method."""
        return cls()
# fmt: on


EXPECTED = '''\
class Example:
    width: int = 3  # why three

    def method(self, word: str) -> str:
        # why this is so
        text = """a string
        that is no docstring"""
        return word + text

    async def wait(self) -> None:
        await self.sleep()

    def empty(self) -> int:  # a comment here
        ...

    def abstract(
        self, word: str
    ) -> str: ...

    def short(self): ...

    def both(self): "Stays."; return 1  # noqa: E702

    @property
    def half(self) -> float:
        return self.width / 2

    @functools.cached_property
    def third(self) -> float:
        return self.width / 3

    @classmethod
    def make(cls) -> "Example":
        return cls()'''


def test_a_class_is_shown_without_any_docstring_and_otherwise_as_it_stands():
    assert show(Example).text == EXPECTED


METHODS = {
    "wait": """\
async def wait(self) -> None:
    await self.sleep()""",
    "abstract": """\
def abstract(
    self, word: str
) -> str: ...""",
    "half": """\
@property
def half(self) -> float:
    return self.width / 2""",
    "third": """\
@functools.cached_property
def third(self) -> float:
    return self.width / 3""",
    "make": """\
@classmethod
def make(cls) -> "Example":
    return cls()""",
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_moved_to_the_margin(name):
    assert show(getattr(Example, name)).text == METHODS[name]


def test_a_method_whose_docstring_is_badly_indented():
    assert show(Example.method).text.startswith(
        "def method(self, word: str) -> str:\n    # why this is so\n"
    )


LIBRARY = {
    f"{place.__name__}.{name}": thing
    for place in (interface, search, plotting, Batch)
    for name, thing in vars(place).items()
    if inspect.isfunction(thing) or inspect.isclass(thing)
    if thing.__module__.startswith("seq2seq_lib") and not name.startswith("__")
}


@pytest.mark.parametrize("name", LIBRARY)
def test_the_library_keeps_its_code_and_loses_its_docstrings(name):
    # it is imported through the checker of shapes, which wraps functions
    written = inspect.getsource(inspect.unwrap(LIBRARY[name]))
    expected = ast.parse(textwrap.dedent(written))
    for node in ast.walk(expected):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            node.body = node.body[1:] or ast.parse("...").body
    assert ast.dump(ast.parse(show(LIBRARY[name]).text)) == ast.dump(expected)


def test_wrapped_functions_and_dataclasses_show_what_was_written():
    memory = show(interface.EncoderOutput).text
    assert memory.startswith(
        "@dataclass(frozen=True)\nclass EncoderOutput:\n    states:"
    )
    assert "Float[Tensor" in show(search.keep_probable).text
    assert show(plotting.heat_map).text.startswith("@styled\ndef heat_map(")
    assert show(functools.lru_cache(generator)).text == show(generator).text


def test_several_things_stand_below_each_other():
    both = show(generator, Example.half)
    assert both.text == f"{show(generator)}\n\n\n{show(Example.half)}"


def test_terminals_and_notebooks_that_are_compared_get_the_bare_source():
    source = show(generator)
    assert repr(source) == str(source) == source.text
    assert "<" not in repr(source)


def text_of(markup):
    body = re.sub(r"<style>.*?</style>", "", markup, flags=re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", "", body)).strip()


def test_the_html_says_the_same_in_colours():
    source = show(Example, search.beam_search)
    markup = source._repr_html_()
    assert text_of(markup) == source.text
    assert '<span class="k">def</span>' in markup
    assert markup.count("<pre>") == markup.count("</pre>") == 1


def test_html_in_the_source_is_not_html_on_the_page():
    assert "<b>" not in Source("x = '<b>'")._repr_html_()


def test_every_word_pygments_colours_finds_its_colour():
    from pygments.lexers import PythonLexer
    from pygments.token import STANDARD_TYPES, Comment, Keyword, Number, String

    code = inspect.getsource(sys.modules[__name__])
    for kind, _ in PythonLexer().get_tokens(code):
        for group, name in (
            (Keyword, "k"),
            (String, "s"),
            (Number, "m"),
            (Comment, "c"),
        ):
            if kind in group:
                assert STANDARD_TYPES[kind].startswith(name)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", [1, 2], ids=["light", "dark"])
@pytest.mark.parametrize("name", [name for name in COLOURS if name != "ground"])
def test_every_colour_can_be_read_on_its_card(name, theme):
    lights = [luminance(COLOURS[n][theme]) for n in (name, "ground")]
    # WCAG 2.2, success criterion 1.4.3
    assert (max(lights) + 0.05) / (min(lights) + 0.05) >= 4.5


def test_the_card_is_dark_on_the_dark_pages_of_all_four_hosts():
    style = show(generator)._repr_html_()
    [dark] = [line for line in style.splitlines() if COLOURS["ground"][2] in line]
    selectors = dark.partition("{")[0]
    assert [s.strip().split()[0] for s in selectors.split(",")] == list(DARK_PAGES)
    assert "prefers-color-scheme" not in style  # what the page shows, not the system


def test_no_rule_reaches_beyond_the_card():
    style = show(generator)._repr_html_().partition("</style>")[0]
    rules = re.findall(r"([^{}]+)\{[^}]*\}", style.removeprefix("<style>"))
    assert len(rules) > 8
    for selector in rules:
        assert "div.seq2seq-source" in selector


def test_without_pygments_the_source_stays_plain(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygments", None)
    source = show(generator)
    assert source._repr_html_() is None  # Jupyter then shows text/plain
    assert repr(source).startswith("def generator")


def test_jupyter_gets_both_kinds():
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(show(generator))
    assert data["text/plain"] == show(generator).text
    assert data["text/html"] == show(generator)._repr_html_()


@dataclass
class Thing:
    width: int


@pytest.mark.parametrize(
    "thing, message",
    [
        (len, r"no Python source for <built-in function len>.* stands in a module"),
        (int, "no Python source for <class 'int'>"),
        (torch.matmul, "no Python source"),
        (eval("lambda: 1"), "no Python source"),
        (3, r"an object of type int: expected a function.* Try show\(int\)"),
        (Thing(3), r"Try show\(Thing\)"),
        (torch.nn.Linear(1, 1), r"Try show\(Linear\)"),
        (functools.partial(generator, 1), "an object of type partial"),
        (property(), "an object of type property"),
    ],
)
def test_what_has_no_source_is_refused(thing, message):
    with pytest.raises(ValueError, match=message):
        show(thing)


def test_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to show"):
        show()
