"""Files that are written whole or not at all, and where they live."""

import os
import secrets
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
