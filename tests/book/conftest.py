"""A folder of its own for the notebooks that a test makes."""

import nbformat
import pytest
from made_notebooks import notebook_of


@pytest.fixture
def write(tmp_path):
    def write(*cells, name="01_one"):
        path = tmp_path / "book" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook_of(*cells), path)
        return path

    return write
