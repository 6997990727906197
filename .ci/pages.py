"""Lists the notebooks of the book; run as a program, it prints one path a line.

Everything that runs, checks or rewrites "all notebooks" asks here. It needs Python
alone, so that make can ask before anything is installed.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = {"_build", ".ipynb_checkpoints"}


def notebooks(root: Path = ROOT) -> list[Path]:
    """Every notebook below ``book/``, chapters before their labs."""
    found = (root / "book").rglob("*.ipynb")
    kept = (path for path in found if BUILT.isdisjoint(path.parts))
    return sorted(kept, key=lambda path: (len(path.parts), path))


def page_name(notebook: Path) -> str:
    """The name of a notebook's page, such as ``06_attention`` or ``labs/06_scores``."""
    return notebook.relative_to(book_of(notebook)).with_suffix("").as_posix()


def book_of(notebook: Path) -> Path:
    """The folder of the book that a notebook belongs to."""
    return next(folder for folder in notebook.parents if folder.name == "book")


if __name__ == "__main__":
    for path in notebooks():
        print(path.relative_to(ROOT).as_posix())
