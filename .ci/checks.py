"""What in a notebook would surprise a reader, cell by cell.

Some of it shows before the notebook runs (``source_problems``), some only in its
outputs (``output_problems``). What only pages of the new form must keep, see
``budget.Form``, is left alone in older ones.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from budget import FENCE, Form, stated
from folds import fold_problems, is_visible, tags_of
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
LONGEST_CELL = 35
LONGEST_OUTPUT = 30

MACHINE = re.compile(
    rf"{re.escape(str(ROOT))}\S*|\b[A-Z]:\\\S+"
    r"|(?<![\w./])/(?:home|root|Users|tmp|private|var|usr|opt)/\S+"
)
MEMORY = re.compile(r"\b0x[0-9a-f]{6,}\b")
FILLER = re.compile(
    r"(?i)\b(?:simply|obviously|it is important to note|delve|crucial|leverage)\b"
)
MYST = re.compile(r"(?m)^\s*(?:`{3,}|:{3,}|~{3,})\{[^}\n]+\}|(?<!`)\{[a-z][\w:.+-]*\}`")
SHOW = re.compile(r"(?m)^show\(")
MARKDOWN_IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(")
FILE_NAME = re.compile(r"(?i)\S+\.(?:png|svg|jpe?g|gif|webp)")
COLON_BEFORE_HEADING = re.compile(r":[*_]*\s*\n#{1,6} ")
CLOSED = {"hide-output", "remove-output", "remove-cell", "scroll-output"}
CLOSED |= {name.replace("-", "_") for name in CLOSED} | {"output_scroll"}

CARD_TAG = re.compile(r"<div class=[\"']?predict\b")
PART = r"\S(?:(?!</?(?:div|details|summary)\b).)*?"
CARD = re.compile(
    rf'(?s)<div class="predict">\n\n\*\*Predict first\.\*\* {PART}\n\n'
    rf"<details><summary>Answer</summary>\n\n{PART}\n\n</details>\n\n</div>"
)
CARD_FORM = (
    'a card is a cell of its own: `<div class="predict">`, `**Predict first.** The '
    "question?`, `<details><summary>Answer</summary>`, the answer, `</details>`, "
    "`</div>`, with one blank line between each two"
)

# Magics that run the rest of their cell as Python, in the notebook itself.
TRANSPARENT = re.compile(r"%%(?:time|capture|prun)\b.*\n?")


def problems(notebook: NotebookNode, form: Form = Form.OLD) -> Iterator[str]:
    """What a reader would stumble over, cell by cell."""
    yield from source_problems(notebook, form)
    yield from output_problems(notebook, form)


def source_problems(notebook: NotebookNode, form: Form = Form.OLD) -> Iterator[str]:
    """What is wrong with a notebook whether it has run or not."""
    cells = notebook.cells
    first = next((cell for cell in cells if cell.cell_type == "code"), None)
    if first is None or "setup" not in tags_of(first):
        yield "the first code cell is not the set-up cell: run `make format`"
    for number, cell in enumerate(cells):
        if cell.cell_type == "code":
            found = [*code_problems(cell)]
            found += fold_problems(cell) if form is not Form.OLD else []
        else:
            found = [*text_problems(cell), *card_problems(cells, number, form)]
            found += colon_problems(cells, number) if form is not Form.OLD else []
        for problem in found:
            yield f"cell {number}: {problem}"
    if form in (Form.MAIN, Form.INTRO):
        yield from name_problems(cells)
    if form is Form.MAIN and len(stated(notebook)) != 1:
        yield (
            "no paragraph, or more than one, that is `About 30 minutes to read, 60 "
            "seconds to run on one CPU core.`: write one, the numbers are put right"
        )


def output_problems(notebook: NotebookNode, form: Form = Form.OLD) -> Iterator[str]:
    """What is wrong with what a run has left."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = [cell.execution_count for cell in code]
    if counts != list(range(1, len(code) + 1)):
        yield f"counts are {counts}, not 1 to {len(code)}: run `make notebooks`"
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type != "code":
            continue
        found = [*cell_output_problems(cell)]
        if form is not Form.OLD:
            found += length_problems(cell)
        for problem in found:
            yield f"cell {number}: {problem}"


def text_problems(cell: NotebookNode) -> Iterator[str]:
    """What is wrong in a cell of prose."""
    for word in FILLER.findall(cell.source):
        yield f"filler word {word!r}: cut it"
    for markup in MYST.findall(cell.source):
        yield f"{markup.strip()!r} is raw text in Jupyter and Colab: use plain Markdown"
    for alt in MARKDOWN_IMAGE.findall(cell.source):
        yield from alt_problems(alt)


def code_problems(cell: NotebookNode) -> Iterator[str]:
    """What is wrong in a cell of code."""
    lines = cell.source.count("\n") + 1
    if lines > LONGEST_CELL:
        yield f"{lines} lines: a cell holds one idea, at most {LONGEST_CELL} lines"


def card_problems(cells: list[NotebookNode], number: int, form: Form) -> Iterator[str]:
    """What is wrong with a card that asks the reader to predict an output.

    Outside of main pages, questions without a card are left alone.
    """
    text = cells[number].source.strip()
    asks = form in (Form.MAIN, Form.INTRO) and text.startswith("**Predict first")
    if not asks and not CARD_TAG.search(text):
        return
    if not CARD.fullmatch(text):
        yield CARD_FORM
    rest = enumerate(cells[number + 1 :], number + 1)
    code = next(((n, cell) for n, cell in rest if cell.cell_type == "code"), None)
    if code is None:
        yield "no cell of code after this card answers it"
    elif "hide-output" not in tags_of(code[1]):
        yield f"cell {code[0]} answers this card in the open: tag it hide-output"


def colon_problems(cells: list[NotebookNode], number: int) -> Iterator[str]:
    """Whether a colon announces something and a heading follows."""
    text = FENCE.sub("…", cells[number].source)
    after = cells[number + 1] if number + 1 < len(cells) else None
    if after is not None and after.cell_type == "markdown":
        text += "\n\n" + after.source.partition("\n")[0]
    if COLON_BEFORE_HEADING.search(text):
        yield "a colon before a heading: what it announces is missing"


def name_problems(cells: list[NotebookNode]) -> Iterator[str]:
    """Names that two visible cells bind to different things."""
    known: dict[str, tuple[int, str]] = {}
    for number, cell in enumerate(cells):
        if not is_visible(cell):
            continue
        here = dict(bindings(parsed(cell.source)))
        for name, origin in here.items():
            first, before = known.setdefault(name, (number, origin))
            if first != number and not (origin and origin == before):
                yield (
                    f"cell {number}: binds `{name}`, which cell {first} has bound: "
                    "on a page a name means one thing"
                )


def parsed(source: str) -> list[ast.stmt]:
    """The statements of a cell, IPython's commands as calls; none if not Python."""
    source = TRANSPARENT.sub("", source, count=1)
    try:
        return ast.parse(TransformerManager().transform_cell(source)).body
    except SyntaxError:
        return []


def bindings(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Names that statements bind at the top level, and what an import binds them to.

    Loop variables, names of ``with``, ``_``, what ``x += 1`` changes, and stubs for the
    reader to fill in are left out.
    """
    for one in statements:
        match one:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                if not is_stub(one):
                    yield one.name, ""
                continue
            case ast.Import():
                for alias in one.names:
                    package = alias.name.partition(".")[0]
                    yield (
                        alias.asname or package,
                        alias.name if alias.asname else package,
                    )
            case ast.ImportFrom():
                for alias in one.names:
                    yield alias.asname or alias.name, f"{one.module}.{alias.name}"
            case ast.Assign(targets=targets):
                yield from ((name, "") for target in targets for name in stores(target))
            case ast.AnnAssign(target=target, value=ast.expr()):
                yield from ((name, "") for name in stores(target))
        for node in ast.walk(one):
            if isinstance(node, ast.NamedExpr):
                yield node.target.id, ""
        inner = [*getattr(one, "handlers", []), *getattr(one, "cases", []), one]
        for block in inner:
            for field in ("body", "orelse", "finalbody"):
                yield from bindings(getattr(block, field, []))


def stores(target: ast.expr) -> Iterator[str]:
    """The names that an assignment to this target binds."""
    for node in ast.walk(target):
        is_name = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if is_name and node.id != "_":
            yield node.id


def is_stub(one: ast.stmt) -> bool:
    """Whether a class or function is empty, for the reader to fill in."""
    match one:
        case ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(body=body) | ast.ClassDef(body=body):
            return all(map(is_stub, body))
    return False


def cell_output_problems(cell: NotebookNode) -> Iterator[str]:
    """What is wrong in the outputs of a cell."""
    if SHOW.search(cell.source) and not any("data" in o for o in cell.outputs):
        yield "shows no source: `show(...)` must be the last line of its cell"
    for output in cell.outputs:
        if output.output_type == "error" and "raises-exception" not in tags_of(cell):
            yield f"raised {output.ename}: {output.evalue}"
        if output.get("name") == "stderr":
            yield f"wrote to standard error: {output.text.strip()[:200]!r}"
        for text in texts(output):
            for found in MACHINE.findall(text):
                yield f"path of this machine in the output: {found!r}"
            for found in MEMORY.findall(text):
                yield f"address in memory in the output, new in every run: {found!r}"
    if any(is_image(output) for output in cell.outputs):
        yield from alt_problems(
            cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        )


def length_problems(cell: NotebookNode) -> Iterator[str]:
    """Whether an output is too long to stand open, or a closed one is empty."""
    lines = sum(printed_lines(output) for output in cell.outputs)
    if lines > LONGEST_OUTPUT and CLOSED.isdisjoint(tags_of(cell)):
        yield (
            f"an open output of {lines} lines: at most {LONGEST_OUTPUT} may stand "
            "open, tag it hide-output"
        )
    if "hide-output" in tags_of(cell) and not cell.outputs:
        yield "tagged hide-output, but has no output"


def printed_lines(output: NotebookNode) -> int:
    """How many lines of text an output has; an image has none."""
    data = output.get("data", {})
    shown = [data.get("text/plain", ""), data.get("text/markdown", "")]
    return (
        0
        if is_image(output)
        else max(len(text.splitlines()) for text in (output.get("text", ""), *shown))
    )


def is_image(output: NotebookNode) -> bool:
    """Whether an output is a picture."""
    return any(kind.startswith("image/") for kind in output.get("data", {}))


def alt_problems(alt: str) -> Iterator[str]:
    """What is wrong with an image's alternative text."""
    if not alt.strip():
        yield (
            "an image without alt text: say what it shows, in the cell's metadata as "
            '{"mystnb": {"image": {"alt": "…"}}} or in ![…](file)'
        )
    elif FILE_NAME.fullmatch(alt.strip()):
        yield f"the alt text {alt!r} is a file name: say what the image shows"


def texts(output: NotebookNode) -> Iterator[str]:
    """Every readable text of an output."""
    yield output.get("text", "")
    yield output.get("evalue", "")
    for kind, value in output.get("data", {}).items():
        if kind.startswith("text/") or kind == "image/svg+xml":
            yield value
