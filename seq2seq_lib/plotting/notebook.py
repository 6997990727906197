"""The library's own source, shown in a chapter: quoted, never pasted.

Jupyter and Colab ask an object for ``_repr_html_`` and a terminal for ``repr``, so
nothing here needs IPython itself. Colours need pygments; without it, text stays plain.
"""

import ast
import functools
import inspect
import textwrap
from dataclasses import dataclass

# Each with the classes that pygments gives to such words, and its colour on the light
# and on the dark card. No colour reads well on both, so the card has its own ground.
COLOURS = {
    "ground": ("pre", "#f6f8fa", "#1b1f27"),
    "text": ("pre", "#1f2328", "#e6edf3"),
    "keyword": ("[class^=k], .ow", "#a0111f", "#ff8a80"),
    "name": (".nf, .fm, .nc", "#6930c3", "#d2a8ff"),
    "builtin": (".nb, .bp, .nd, .ne", "#7a4100", "#ffb86b"),
    "string": ("[class^=s]", "#0a3069", "#a5d6ff"),
    "number": ("[class^=m], .il", "#0550ae", "#79c0ff"),
    "comment": ("[class^=c]", "#57606a", "#9fa8b3"),
}
# The book, JupyterLab, Colab and VS Code each say in their own way that a page is dark.
DARK_PAGES = (
    "[data-theme=dark]",
    "[data-jp-theme-light=false]",
    "[theme=dark]",
    ".vscode-dark",
)


@dataclass(frozen=True, repr=False)
class Source:
    """Source code that notebooks show in colours and terminals as it is.

    Attributes:
        text: the code.
    """

    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str | None:
        try:
            from pygments import highlight  # type: ignore[import-untyped]
            from pygments.formatters import (  # type: ignore[import-untyped]
                HtmlFormatter,
            )
            from pygments.lexers import PythonLexer  # type: ignore[import-untyped]
        except ImportError:
            return None
        code = highlight(self.text, PythonLexer(), HtmlFormatter(nowrap=True))
        return (
            f"<style>\n{_stylesheet()}\n</style>\n"
            f'<div class="seq2seq-source"><pre>{code}</pre></div>'
        )


def show(*things: object) -> Source:
    """The source of functions, classes or methods, without docstrings.

    Args:
        things: what to show, one below the other.

    Returns:
        an object that a notebook shows in colours, if it is the last of its cell.

    Raises:
        ValueError: there is no Python source for it.

    >>> from seq2seq_lib.seeds import generator
    >>> show(generator)
    def generator(*numbers: int) -> torch.Generator:
        return torch.Generator().manual_seed(mixed_seed(*numbers))
    """
    if not things:
        raise ValueError("nothing to show: give a function, a class or a method.")
    return Source("\n\n\n".join(map(_source, things)))


def _source(thing: object) -> str:
    found = thing
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, functools.cached_property):
        found = found.func
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        kind = type(thing).__name__
        raise ValueError(
            f"cannot show an object of type {kind}: expected a function, a class or a "
            f"method. Try show({kind})."
        )
    try:
        # getsource looks through decorators, and through the checker of shapes
        return _without_docstrings(inspect.getsource(found))
    except (OSError, TypeError, SyntaxError) as error:
        raise ValueError(
            f"there is no Python source for {thing!r}: it is built in, or was typed at "
            "a prompt. Show a function, class or method that stands in a module."
        ) from error


def _without_docstrings(source: str) -> str:
    """Cut docstrings out; a body that had nothing else becomes ``...``."""
    # a method is indented: it parses only inside of something
    shift = int(source[0].isspace())
    tree = ast.parse("if True:\n" * shift + source)
    lines = source.split("\n")
    owners = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node) is not None
    ]
    # from the last to the first, so that line numbers above stay right
    for owner in sorted(owners, key=lambda node: -node.body[0].lineno):
        docstring = owner.body[0]
        first = docstring.lineno - 1 - shift
        end = (docstring.end_lineno or docstring.lineno) - shift
        before = lines[first].encode()[: docstring.col_offset].decode()
        if len(owner.body) == 1:
            if not before.strip() and lines[first - 1].endswith(":"):
                first -= 1
                before = lines[first] + " "
            lines[first:end] = [before + "..."]
        elif not before.strip():
            while not lines[end].strip():
                end += 1
            del lines[first:end]
    return textwrap.dedent("\n".join(lines)).strip("\n")


def _stylesheet() -> str:
    card = "div.seq2seq-source"

    def colours(column: int) -> str:
        return " ".join(f"--{name}: {row[column]};" for name, row in COLOURS.items())

    dark = ", ".join(f"{page} {card}" for page in DARK_PAGES)
    words = [
        f"{card} :is({classes}) {{ color: var(--{name}); }}"
        for name, (classes, _, _) in COLOURS.items()
        if name != "ground"
    ]
    return "\n".join(
        [
            f"{card} {{ {colours(1)} }}",
            f"{dark} {{ {colours(2)} }}",
            f"{card} pre {{ background: var(--ground); border: 1px solid #8886;",
            "  border-radius: 4px; margin: 0; padding: 0.7em 1em; overflow-x: auto;",
            "  line-height: 1.45; white-space: pre;",
            "  font-family: var(--jp-code-font-family, ui-monospace, monospace); }",
            *words,
            # the theme of the book puts a light frame around HTML on its dark pages
            f".cell_output .text_html:has({card}) {{",
            "  background: none !important; padding: 0 !important; }",
        ]
    )
