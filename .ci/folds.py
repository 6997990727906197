"""What folds a cell, from its tags, in every program that shows notebooks.

``hide-input`` closes the code of a cell and ``hide-output`` what it printed or drew:
in the book, in JupyterLab, in Colab and in the classic notebook. The first line of
folded code is its title, ``# @title Draw the weights``: Colab and the book show it on
what opens the fold, and JupyterLab shows the first line of a closed cell anyway.
"""

import re
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

# Folded in the book, or not shown there at all.
OUT_OF_SIGHT = {"hide-input", "remove-input", "remove-cell"}
TITLE = re.compile(r"# @title (?P<title>\S.*)")
PROMPTS = {"code_prompt_show", "code_prompt_hide"}


def tags_of(cell: NotebookNode) -> set[str]:
    """The tags of a cell."""
    return set(cell.metadata.get("tags", []))


def is_visible(cell: NotebookNode) -> bool:
    """Whether a cell of code shows its code to the reader."""
    return cell.cell_type == "code" and OUT_OF_SIGHT.isdisjoint(tags_of(cell))


def title_of(cell: NotebookNode) -> str | None:
    """The title in the first line of a cell, if it has one."""
    found = TITLE.fullmatch(cell.source.partition("\n")[0].rstrip())
    return found and found["title"]


def with_folds(cell: NotebookNode) -> dict[str, Any]:
    """The metadata of a cell of code, folded as its tags ask and not otherwise.

    Code without a title stays open in Jupyter and Colab, where nothing would name it.
    """
    metadata = {k: v for k, v in cell.metadata.items() if k in ("tags", "mystnb")}
    metadata["mystnb"] = {
        k: v for k, v in metadata.get("mystnb", {}).items() if k not in PROMPTS
    }
    tags, title = tags_of(cell), title_of(cell)
    name, folds = "", {}
    if "hide-input" in tags and title:
        name = f": {title}"
        folds["source_hidden"] = True
        metadata["cellView"] = "form"
    if "hide-output" in tags:
        # MyST-NB puts "source" or "output" in the place of {type}.
        name = f" the {{type}}{name}" if "hide-input" in tags else " the output"
        folds["outputs_hidden"] = metadata["collapsed"] = True
    if name:
        metadata["mystnb"] |= {
            "code_prompt_show": f"Show{name}",
            "code_prompt_hide": f"Hide{name}",
        }
    if folds:
        metadata["jupyter"] = folds
    return {k: v for k, v in metadata.items() if v}


def fold_problems(cell: NotebookNode) -> Iterator[str]:
    """What is wrong with the folds of a cell of code."""
    tags, titled = tags_of(cell), title_of(cell) is not None
    if "hide-cell" in tags:
        yield "tagged hide-cell, which folds nothing in Jupyter: use hide-input"
    if "hide-input" in tags and not titled:
        yield (
            "folded code without a title: its first line must be a comment such as "
            "`# @title Draw the weights`"
        )
    if titled and is_visible(cell):
        yield "a title over visible code: tag it hide-input, or cut the title"
