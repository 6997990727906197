"""Executes notebooks in fresh kernels and stores what a rerun would store again.

``notebooks.py PATH…`` runs every notebook from its first cell to its last and writes
it back with its outputs, with folds as the tags ask, and with the time it takes.
``notebooks.py --check PATH…`` runs nothing: it says what in the stored notebooks would
surprise a reader, and where they are too long. Either exits with 1 if something is
wrong, and then the files are as they were; only too long a page is stored all the same.
``notebooks.py --times PATH…`` stores the outputs and also how long the notebooks ran,
for the table on the first page. ``notebooks.py --tidy PATH…`` writes what needs no run,
after a change to text or tags, and ``notebooks.py --count`` prints how long pages are.
"""

import argparse
import json
import re
import resource
import sys
from pathlib import Path

import nbformat
from budget import (
    Count,
    Form,
    budget_problems,
    count,
    form_of,
    in_steps,
    noted_seconds,
    stated,
    table,
    timed,
    worth_stating,
)
from checks import ROOT, problems, source_problems
from folds import with_folds
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from pages import book_of, notebooks, page_name

from seq2seq_lib.files import write_whole

SECONDS_PER_CELL = 600
TIMES = ROOT / "seq2seq_lib" / "pretrained" / "results" / "chapters.json"

KERNEL = {
    "name": "python3",
    "display_name": "Python 3 (ipykernel)",
    "language": "python",
}
# Without the patch version, which would change with every update of Python.
LANGUAGE = {"name": "python", "pygments_lexer": "ipython3"}

BAR = re.compile(r"\d+%\|.*\| *\d+/\d+ \[|^\s*$")


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
        if cell.cell_type == "code":
            cell.metadata = with_folds(cell)
            cell.outputs = [clean_output(o) for o in cell.outputs if not is_bar(o)]
        else:
            cell.metadata = {k: v for k, v in cell.metadata.items() if k == "tags"}
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


def read(path: Path) -> NotebookNode:
    """A notebook of the book."""
    return nbformat.read(path, as_version=4)


def counted(path: Path, times: Path = TIMES) -> tuple[Form, Count]:
    """What kind of page a stored notebook is, and how long."""
    notebook = read(path)
    return form_of(path, notebook), count(notebook, noted_seconds(times, path))


def checked(path: Path, times: Path = TIMES) -> list[str]:
    """The problems of a stored notebook."""
    notebook = read(path)
    form, length = counted(path, times)
    found = [*problems(notebook, form), *budget_problems(length, form)]
    if found:
        return found
    if stated(notebook) != stated(timed(notebook)):
        found.append(
            f"states another time than {length.minutes} minutes for {length.words:,} "
            f"words and {length.lines} lines: run `.ci/notebooks.py --tidy`"
        )
    if text_of(cleaned(notebook)) != path.read_text(encoding="utf-8"):
        pairs = zip(notebook.cells, cleaned(notebook).cells, strict=True)
        cells = [n for n, (a, b) in enumerate(pairs) if a.metadata != b.metadata]
        found.append(
            "has metadata of an editor or of a run, or folds that are not those of its "
            f"tags (cells {cells}): run `.ci/notebooks.py --tidy`"
        )
    return found


def tidied(path: Path) -> list[str]:
    """Write what a notebook would be stored with, but for its outputs."""
    write_whole(path, text_of(timed(cleaned(read(path)))))
    return []


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
    notebook = read(path)
    form, before = form_of(path, notebook), stated(notebook)
    if found := list(source_problems(notebook, form)):
        return found  # in time: a run takes minutes
    start = core_seconds()
    try:
        notebook = cleaned(executed(notebook, path.parent))
    except CellExecutionError as error:
        return [str(error)]
    seconds = core_seconds() - start
    if found := list(problems(notebook, form)):
        return found
    known = before[0][1] if before and times is None else None
    write_whole(path, text_of(timed(notebook, worth_stating(seconds, known))))
    print(f"{path}: {seconds:.0f} s of one core")
    for problem in budget_problems(count(notebook, in_steps(seconds)), form):
        print(f"{path}: stored, but --check refuses {problem}")
    if times is not None:
        store_time(times, path, seconds)
    return []


def store_time(times: Path, path: Path, seconds: float) -> None:
    """Note how long a notebook keeps a core busy, in steps of 5 seconds."""
    known = json.loads(times.read_text(encoding="utf-8")) if times.exists() else {}
    known[page_name(path)] = in_steps(seconds)
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
    choice.add_argument("--tidy", action="store_true", help="write all but outputs")
    choice.add_argument("--count", action="store_true", help="print the lengths")
    parser.add_argument("path", nargs="*", type=Path, help="a notebook")
    arguments = parser.parse_args()
    if arguments.count:
        paths = arguments.path or notebooks()
        print(table((page_name(path), *counted(path)) for path in paths))
        return 0
    wrong = False
    for path in arguments.path:
        if arguments.check:
            found = checked(path)
        elif arguments.tidy:
            found = tidied(path)
        else:
            found = stored(path, TIMES if arguments.times else None)
        for problem in found:
            wrong = True
            print(f"{path}: {problem}", file=sys.stderr)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
