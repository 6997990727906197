"""Executes notebooks in fresh kernels and stores what a rerun would store again.

``notebooks.py PATH…`` runs every notebook from its first cell to its last and writes
it back with its outputs. ``notebooks.py --check PATH…`` runs nothing: it says what in
the stored notebooks would surprise a reader. Either exits with 1 if something is wrong,
and then the files are as they were. ``notebooks.py --times PATH…`` stores the outputs
and also how long the notebooks ran, for the table on the first page.
"""

import argparse
import json
import math
import re
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from pages import book_of, page_name

from seq2seq_lib.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
LONGEST_CELL = 35
SECONDS_PER_CELL = 600
TIMES = ROOT / "seq2seq_lib" / "pretrained" / "results" / "chapters.json"

KERNEL = {
    "name": "python3",
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
}
# Without the patch version, which would change with every update of Python.
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}
CELL_METADATA = {"tags", "mystnb"}

BAR = re.compile(r"\d+%\|.*\| *\d+/\d+ \[|^\s*$")
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


def executed(notebook: NotebookNode, directory: Path) -> NotebookNode:
    """A copy of the notebook, run from top to bottom in a fresh kernel."""
    client = NotebookClient(
        nbformat.from_dict(notebook),
        kernel_name=KERNEL["name"],
        timeout=SECONDS_PER_CELL,
        resources={"metadata": {"path": str(directory)}},
        coalesce_streams=True,  # how the kernel cuts its prints depends on timing
        record_timing=False,
        store_widget_state=False,
    )
    return client.execute()


def cleaned(notebook: NotebookNode) -> NotebookNode:
    """A copy of the notebook without anything that depends on when or where it ran."""
    notebook = nbformat.from_dict(notebook)
    notebook.metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    for cell in notebook.cells:
        cell.metadata = {k: v for k, v in cell.metadata.items() if k in CELL_METADATA}
        if cell.cell_type == "code":
            cell.outputs = [clean_output(o) for o in cell.outputs if not is_bar(o)]
    return notebook


def is_bar(output: NotebookNode) -> bool:
    """Whether an output is a progress bar, of use only to the one who waits."""
    return output.get("name") == "stderr" and all(
        BAR.search(line) for line in output.text.splitlines()
    )


def clean_output(output: NotebookNode) -> NotebookNode:
    """An output without paths of this machine and without metadata but image sizes."""
    if output.output_type == "error":
        # The frames show where the library is installed; the message is what we teach.
        output.traceback = [f"{output.ename}: {output.evalue}"]
    elif "metadata" in output:
        sizes = {
            kind: {k: v for k, v in values.items() if k in ("width", "height")}
            for kind, values in output.metadata.items()
            if kind.startswith("image/")
        }
        output.metadata = {kind: size for kind, size in sizes.items() if size}
    return output


def text_of(notebook: NotebookNode) -> str:
    """The notebook as it stands in its file."""
    return f"{nbformat.writes(notebook)}\n"


def problems(notebook: NotebookNode) -> Iterator[str]:
    """What a reader would stumble over, cell by cell."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if not code or "setup" not in code[0].metadata.get("tags", []):
        yield "the first code cell is not the set-up cell: run `make format`"
    counts = [cell.execution_count for cell in code]
    if counts != list(range(1, len(code) + 1)):
        yield f"counts are {counts}, not 1 to {len(code)}: run `make notebooks`"
    for number, cell in enumerate(notebook.cells):
        check = code_problems if cell.cell_type == "code" else text_problems
        for problem in check(cell):
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
    """What is wrong in a cell of code or in its outputs."""
    tags = cell.metadata.get("tags", [])
    lines = cell.source.count("\n") + 1
    if lines > LONGEST_CELL:
        yield f"{lines} lines: a cell holds one idea, at most {LONGEST_CELL} lines"
    if SHOW.search(cell.source) and not any("data" in o for o in cell.outputs):
        yield "shows no source: `show(...)` must be the last line of its cell"
    for output in cell.outputs:
        if output.output_type == "error" and "raises-exception" not in tags:
            yield f"raised {output.ename}: {output.evalue}"
        if output.get("name") == "stderr":
            yield f"wrote to standard error: {output.text.strip()[:200]!r}"
        for text in texts(output):
            for found in MACHINE.findall(text):
                yield f"path of this machine in the output: {found!r}"
            for found in MEMORY.findall(text):
                yield f"address in memory in the output, new in every run: {found!r}"
    if any(
        kind.startswith("image/") for o in cell.outputs for kind in o.get("data", {})
    ):
        yield from alt_problems(
            cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")
        )


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


def checked(path: Path) -> list[str]:
    """The problems of a stored notebook."""
    text = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(text, as_version=4)
    found = list(problems(notebook))
    if not found and text_of(cleaned(notebook)) != text:
        found.append("has metadata of an editor or of a run: run `make notebooks`")
    return found


def core_seconds() -> float:
    """For how long processes that this one started, and that ended, have computed.

    That depends less on what else the machine does than the time on the clock.
    """
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def stored(path: Path, times: Path | None = None) -> list[str]:
    """Run a notebook and store it, unless it has problems, which are returned.

    Args:
        path: the notebook.
        times: where to note how long it ran, if that is wanted.
    """
    start = core_seconds()
    notebook = nbformat.read(path, as_version=4)
    try:
        notebook = cleaned(executed(notebook, path.parent))
    except CellExecutionError as error:
        return [str(error)]
    seconds = core_seconds() - start
    found = list(problems(notebook))
    if not found:
        write_whole(path, text_of(notebook))
        print(f"{path}: {seconds:.0f} s of one core")
        if times is not None:
            store_time(times, path, seconds)
    return found


def store_time(times: Path, path: Path, seconds: float) -> None:
    """Note how long a notebook keeps a core busy, in steps of 5 seconds."""
    known = json.loads(times.read_text(encoding="utf-8")) if times.exists() else {}
    known[page_name(path)] = 5 * math.ceil(seconds / 5)
    # Pages that are gone are forgotten.
    book = book_of(path)
    known = {n: s for n, s in known.items() if (book / f"{n}.ipynb").exists()}
    write_whole(times, f"{json.dumps(known, indent=2, sort_keys=True)}\n")


def main() -> int:
    """Run or check the notebooks that are named."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="run nothing, only check")
    choice.add_argument("--times", action="store_true", help="store the times, too")
    parser.add_argument("path", nargs="*", type=Path, help="a notebook")
    arguments = parser.parse_args()
    times = TIMES if arguments.times else None
    wrong = False
    for path in arguments.path:
        for problem in checked(path) if arguments.check else stored(path, times):
            wrong = True
            print(f"{path}: {problem}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
