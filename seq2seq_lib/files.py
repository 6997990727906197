"""Files that are written whole or not at all, and where they live."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs


def cache_directory() -> Path:
    """Where downloads and training runs are kept, outside any repository."""
    return Path(platformdirs.user_cache_dir("seq2seq_lib", appauthor=False))


def write_whole(path: Path, content: bytes | str) -> None:
    """Replace a file in one step, so that no reader ever sees half of it.

    The content goes to a temporary file beside ``path``, is forced to disk, and
    takes the name only then. Whatever goes wrong before that, the old file stays.

    Args:
        path: the file to write; missing parent directories are made.
        content: its new content; text is stored as UTF-8.

    Raises:
        OSError: the disk is full or the place cannot be written to. The message
            says that the previous file, if there was one, is untouched.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(
            error.errno,
            f"could not write {len(data):,} bytes ({error.strerror}); what was there "
            "before is untouched. Free some space or choose another directory",
            str(path),
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove what a process left behind that was killed while it wrote this file."""
    for half_written in path.parent.glob(f".{path.name}.*"):
        half_written.unlink()


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Make a directory that appears only when all its files are written.

    Gives a temporary directory beside ``path`` to write into, which takes the name
    at the end. If anything goes wrong inside, nothing is left behind.

    Args:
        path: the directory to make; missing parents are made, and an empty one of
            this name is taken.

    Raises:
        FileExistsError: there is something under this name already.
    """
    empty = path.is_dir() and not any(path.iterdir())
    if path.exists() and not empty:
        raise FileExistsError(
            f"{path} exists already and is not touched: choose another name, or "
            "remove it first."
        )
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    temporary.mkdir(parents=True)
    try:
        yield temporary
        if empty:
            path.rmdir()
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
