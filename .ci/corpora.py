"""Fetches every corpus that the library downloads, verifies it, and says where it is.

What is neither in ``SEQ2SEQ_DATA`` nor in the cache comes from the web. With a
directory as argument, that directory gets a copy of everything and can then serve as
``SEQ2SEQ_DATA`` on a machine without a network.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from seq2seq_lib.data import RemoteFile, fetch
from seq2seq_lib.data.corpora import CorpusName, remote_files


def files() -> Iterator[RemoteFile]:
    """Each file once, although several corpora may use it."""
    yield from dict.fromkeys(file for name in CorpusName for file in remote_files(name))


def main(directory: str | None = None) -> None:
    """Fetch all files; any that cannot be had ends the program with its message."""
    for file in files():
        try:
            path = fetch(file)
            if directory:
                copy = Path(directory, file.name)
                if not (copy.exists() and copy.samefile(path)):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    path = Path(shutil.copyfile(path, copy))
        except (OSError, ValueError) as error:
            sys.exit(str(error))
        print(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
