"""Small notebooks, as if they had run, for tests of what stores and checks pages."""

import itertools

import address
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

SETUP = address.read_address().setup_cell
TIME = "About 5 minutes to read, 5 seconds to run on one CPU core."


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


def page(*cells):
    """A notebook that states its time, as a main page must."""
    return notebook_of(*cells, new_markdown_cell(TIME))


def described(alt):
    return {"mystnb": {"image": {"alt": alt}}}


def tagged(source, *tags, **metadata):
    return new_code_cell(source, metadata={"tags": list(tags), **metadata})


def printed(text, *, name="stdout", **options):
    return new_code_cell(
        "f()", outputs=[new_output("stream", text=text, name=name)], **options
    )


def shown(kind, value, **options):
    output = new_output("display_data", data={kind: value})
    return new_code_cell("f()", outputs=[output], **options)
