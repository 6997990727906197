"""Data files: found on disk or downloaded once, and always verified.

A corpus that may not be shipped is looked for in the directory that the environment
variable ``SEQ2SEQ_DATA`` names, then in the cache, and downloaded only then. Other data
comes inside packages that ``seq2seq_lib[course]`` installs.
"""

import errno
import hashlib
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from seq2seq_lib.files import cache_directory

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

PAUSES = (0.5, 2.0, 5.0)
"""Seconds to wait before each new attempt after a transient failure."""

TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""


@dataclass(frozen=True)
class RemoteFile:
    """A file that can be downloaded, and how to know that it arrived whole.

    Attributes:
        name: path below the data directory, with forward slashes.
        sha256: checksum of the content, in hexadecimal.
        bytes: size of the content.
        url: where it is downloaded from.
    """

    name: str
    sha256: str
    bytes: int
    url: str


def fetch(file: RemoteFile) -> Path:
    """Find a data file, or download it into the cache.

    A download that was cut short goes on where it stopped, and takes its final name
    only after its checksum was right.

    Returns:
        the path of a file whose checksum was verified.

    Raises:
        ValueError: the file in ``SEQ2SEQ_DATA``, or what the server sent, is not the
            file expected.
        OSError: it is not on disk and cannot be downloaded or stored.
    """
    if found := find_local(file):
        return found
    target = _cached(file)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"{file.name} is not in SEQ2SEQ_DATA, and the cache {target.parent} cannot "
            f"be used ({error.strerror}): put the file into a directory of your own "
            "and set SEQ2SEQ_DATA to it."
        ) from error
    with _alone(target.parent):
        # Another process may have finished the download while this one waited.
        if not target.exists() or _mismatch(target, file):
            _download(file, target)
    return target


def find_local(file: RemoteFile) -> Path | None:
    """Look for a data file in ``SEQ2SEQ_DATA`` and in the cache, without a network.

    Returns:
        the path of a file whose checksum was verified, or ``None``. A damaged file in
        the cache counts as missing, with a warning.

    Raises:
        ValueError: the file in ``SEQ2SEQ_DATA`` is not the one expected.
    """
    given = _given(file)
    if given and given.exists():
        if wrong := _mismatch(given, file):
            raise ValueError(
                f"{given} {wrong}. It was left as it is: replace it with {file.url}, "
                "or unset SEQ2SEQ_DATA to download it."
            )
        return given
    cached = _cached(file)
    if cached.exists():
        if not (wrong := _mismatch(cached, file)):
            return cached
        warnings.warn(
            f"{cached} {wrong}: it is damaged and has to be downloaded again.",
            stacklevel=2,
        )
    return None


def installed_file(
    package: str, name: str, *, sha256: str, extra: str = "course"
) -> Path:
    """Find a data file inside an installed package, without importing the package.

    Args:
        package: name of a top-level package, or of a module.
        name: path of the file inside the package, or beside the module.
        sha256: checksum of the content, in hexadecimal.
        extra: ``seq2seq_lib[extra]`` installs it.

    Raises:
        OSError: the package is not installed, or has no such file.
        ValueError: the file belongs to another version of the package.
    """
    advice = f'Try: pip install "seq2seq_lib[{extra}]"'
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise FileNotFoundError(
            f"the package {package}, which holds {name}, is not installed. {advice}"
        )
    beside = [Path(spec.origin).parent] if spec.origin else []
    for directory in spec.submodule_search_locations or beside:
        path = Path(directory, name)
        if path.exists():
            break
    else:
        raise FileNotFoundError(
            f"the package {package} at {spec.origin} has no {name}. {advice}"
        )
    found = _checksum(path)
    if found != sha256:
        raise ValueError(
            f"{path} has sha256 {found}, expected {sha256}: it is damaged or belongs "
            f"to another version of {package}. {advice}"
        )
    return path


def _given(file: RemoteFile) -> Path | None:
    directory = os.environ.get("SEQ2SEQ_DATA")
    return Path(directory, file.name) if directory else None


def _cached(file: RemoteFile) -> Path:
    return cache_directory() / "data" / file.name


def _checksum(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _mismatch(path: Path, file: RemoteFile) -> str:
    """What is wrong with a file, or nothing."""
    size, found = path.stat().st_size, _checksum(path)
    if found == file.sha256:
        return ""
    return (
        f"has {size:,} bytes and sha256 {found}, "
        f"expected {file.bytes:,} bytes and sha256 {file.sha256}"
    )


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Wait until no other process downloads into this directory.

    The operating system ends the lock with the process, so none is ever left behind.
    """
    with (directory / ".lock").open("ab") as handle:
        if sys.platform == "win32":
            while True:
                try:
                    msvcrt.locking(handle.fileno(), msvcrt.LK_LOCK, 1)
                    break
                except OSError as error:
                    # it gives up after ten seconds, but a download may take longer
                    if error.errno != errno.EDEADLK:
                        raise
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class _LostError(Exception):
    """A download stopped; ``transient`` if another attempt may help."""

    def __init__(self, problem: str, *, transient: bool = True) -> None:
        super().__init__(problem)
        self.transient = transient


def _download(file: RemoteFile, target: Path) -> None:
    """Complete the part file, verify it, and give it its final name."""
    part = target.with_name(f"{target.name}.part")
    for pause in (*PAUSES, None):
        have = _size(part)
        try:
            if have < file.bytes:
                _receive(file, part, have)
        except _LostError as error:
            if pause is None or not error.transient:
                raise ConnectionError(_not_found(file, str(error))) from error
        else:
            wrong = _mismatch(part, file)
            if not wrong:
                part.replace(target)
                return
            part.unlink()
            # What was there before may be to blame, but not for a whole answer.
            if pause is None or not have:
                raise ValueError(
                    f"what {file.url} sent {wrong}; it was thrown away. Does a proxy "
                    "or a log-in page answer in its place? Try again from another "
                    f"network, or save the right file as {target}."
                )
        time.sleep(pause)


def _receive(file: RemoteFile, part: Path, have: int) -> None:
    """Add what is missing after the first ``have`` bytes."""
    request = Request(file.url, headers={"Range": f"bytes={have}-"} if have else {})  # noqa: S310
    try:
        response = urlopen(request, timeout=TIMEOUT)  # noqa: S310
    except HTTPError as error:
        error.close()
        if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # the server's file ends before ours does: the checksum decides
        raise _LostError(
            f"the server answered {error.code} {error.reason}",
            transient=error.code >= 500 or error.code in {408, 429},
        ) from error
    except (OSError, HTTPException) as error:
        raise _LostError(
            f"no connection ({getattr(error, 'reason', error)})"
        ) from error
    with response:
        # A server may ignore the range and send everything from the start.
        goes_on = response.status == HTTPStatus.PARTIAL_CONTENT
        have = have if goes_on else 0
        length = response.headers.get("Content-Length")
        promised = have + int(length) if length else file.bytes
        try:
            with part.open("ab" if goes_on else "wb") as out:
                for chunk in _chunks(response):
                    out.write(chunk)
                    have += len(chunk)
                    if have > file.bytes:
                        return  # too long already: the checksum will say so
        except OSError as error:
            raise OSError(
                error.errno,
                f"could not store {file.bytes:,} bytes ({error.strerror}). Free some "
                "space, or save the file elsewhere and point SEQ2SEQ_DATA there",
                str(part),
            ) from error
    if have < promised:
        raise _LostError(f"the connection ended at {have:,} of {promised:,} bytes")


def _chunks(response: HTTPResponse) -> Iterator[bytes]:
    """The content piece by piece, with failures of the network told apart."""
    try:
        while chunk := response.read(1 << 16):
            yield chunk
    except (OSError, HTTPException) as error:
        raise _LostError(f"the connection broke ({error})") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _not_found(file: RemoteFile, problem: str) -> str:
    given = _given(file)
    return (
        f"cannot get {file.name}: {problem}. Looked for it\n"
        f"  in SEQ2SEQ_DATA: {given or 'not set'}\n"
        f"  in the cache:    {_cached(file)}\n"
        f"  on the web:      {file.url}\n"
        "Try again with a network, or download it elsewhere and put it at one of the "
        f"first two places (SEQ2SEQ_DATA=directory means directory/{file.name})."
    )
