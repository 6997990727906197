"""The outside of a sandbox: starts a box, talks to it, and ends it for certain.

Three strengths, the first that works here is taken:

- *bubblewrap*: new namespaces. No network, no other process, no file but Python itself;
  everything ends with the box.
- *user*: another user with limits, where the grader is root but namespaces are
  forbidden, as in many containers. Files that everybody may read can be read.
- *none*: a process like any other (macOS, Windows, Colab). Good for practising only.
"""

import contextlib
import functools
import importlib.util
import os
import queue
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

from seq2seq_lib.grading.wire import WireError, read_frame, write_frame

ROOT = Path(__file__).parent.parent
EXERCISES = Path(__file__).parent / "exercises"
MEGABYTE = 1 << 20
# How a process, or bubblewrap around it, ends that has computed for too long.
OUT_OF_TIME = () if sys.platform == "win32" else (-signal.SIGXCPU, 128 + signal.SIGXCPU)


class Strength(StrEnum):
    """How well a student's code is locked in."""

    BUBBLEWRAP = "bubblewrap"
    USER = "user"
    NONE = "none"

    @property
    def meaning(self) -> str:
        """What a reader of the score should know."""
        return {
            Strength.BUBBLEWRAP: "graded in a sandbox",
            Strength.USER: "graded as another user with limits: no namespaces here, so "
            "files that everybody may read, and perhaps the network, were in reach",
            Strength.NONE: "practice score: no sandbox here, so nothing proves that "
            "the code did not reach beyond its notebook",
        }[self]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a student's code may use.

    Attributes:
        cpu: seconds of computing, for one cell or one call.
        wall: seconds by the clock, for one cell or one call; longer than ``cpu``,
            because other programs may keep the machine busy.
        start: seconds by the clock until a box is ready.
        total: seconds by the clock for one submission, all boxes together.
        memory: bytes, on top of what PyTorch needs.
        processes: at the same time, threads included.
        file: bytes of the largest file, and of the temporary directory.
    """

    cpu: int = 10
    wall: float = 60.0
    start: float = 120.0
    total: float = 600.0
    memory: int = 1024 * MEGABYTE
    processes: int = 8
    file: int = 16 * MEGABYTE


class BoxLostError(Exception):
    """A box ended, or had to be ended; the message says why."""


class TooLongError(BoxLostError):
    """A box was ended because it took or computed for too long."""


class NotStartedError(OSError):
    """A box did not start, which is not the student's fault."""


class Box:
    """One student's process, from its start to its end.

    Args:
        strength: how it is locked in.
        limits: what its code may use.

    Raises:
        NotStartedError: it did not start.
    """

    def __init__(self, strength: Strength, limits: Limits) -> None:
        self.limits = limits
        # A user of its own, so that its processes can be counted and all be ended.
        separate = strength is not Strength.NONE and os.geteuid() == 0
        self._user = 1_000_000 + secrets.randbelow(1_000_000_000) if separate else None
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter
            _command(strength, limits),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,
        )
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._talk, daemon=True).start()
        confinement = {
            "id": "ready",
            "user": self._user,
            "memory": limits.memory,
            "file": limits.file,
            "processes": None if strength is Strength.NONE else limits.processes,
        }
        try:
            self._exchange(confinement, limits.start)
        except BoxLostError as error:
            raise NotStartedError(
                f"a {strength} sandbox did not start ({error}): try again when the "
                "machine is less busy."
            ) from error

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for its reply.

        Raises:
            BoxLostError: no honest reply came in time; the box is then closed.
        """
        request |= {"id": secrets.token_hex(16), "seconds": self.limits.cpu}
        return self._exchange(request, self.limits.wall)

    def _exchange(self, request: dict[str, Any], seconds: float) -> dict[str, Any]:
        self._requests.put(request)
        try:
            reply = self._replies.get(timeout=seconds)
        except queue.Empty:
            self.close()
            raise TooLongError(f"it took longer than {seconds:.0f} seconds") from None
        if isinstance(reply, dict) and reply.get("id") == request["id"]:
            return reply
        code = self._gone() if isinstance(reply, EOFError | OSError) else None
        self.close()
        if code in OUT_OF_TIME:
            raise TooLongError(
                f"it computed for longer than {self.limits.cpu} seconds"
            ) from None
        if code is not None:
            reason = "it ended the Python process that ran it"
        elif isinstance(reply, WireError):
            reason = "it returned something that cannot be read"
        else:
            reason = "a reply came that nobody had asked for"
        raise BoxLostError(reason) from None

    def _gone(self) -> int:
        """The exit code of a box that has closed its end of the wire."""
        try:
            return self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            return 0

    def _talk(self) -> None:
        """Write and read in a thread, because either may block for ever."""
        stdin = cast("BufferedIOBase", self._process.stdin)
        stdout = cast("BufferedIOBase", self._process.stdout)
        while (request := self._requests.get()) is not None:
            try:
                write_frame(stdin, request)
                self._replies.put(read_frame(stdout))
            except (EOFError, OSError, ValueError) as error:
                self._replies.put(error)
                break
        for stream in (stdin, stdout):
            with contextlib.suppress(OSError):  # what was not written is of no use
                stream.close()

    def close(self) -> None:
        """End the process and everything it started."""
        self._requests.put(None)
        if sys.platform == "win32":
            self._process.kill()
        else:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if self._user is not None:
            _kill_user(self._user)


def _kill_user(user: int) -> None:
    """End what is left of a user; a new process may appear while we look."""
    for _ in range(100):
        left = list(_processes(user))
        if not left:
            return
        for number in left:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _processes(user: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == user:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if state != "Z":
                    yield int(entry.name)
        except OSError:
            continue


@functools.cache
def strongest() -> Strength:
    """The strongest sandbox that works on this system."""
    for strength in (Strength.BUBBLEWRAP, Strength.USER):
        if _works(strength):
            return strength
    return Strength.NONE


def _works(strength: Strength) -> bool:
    if strength is Strength.USER:
        # The other user must be able to read the interpreter.
        return (
            sys.platform.startswith("linux")
            and os.geteuid() == 0
            and all(
                parent.stat().st_mode & 0o005 == 0o005
                for place in _places()
                for parent in (place, *place.parents)
            )
        )
    if shutil.which("bwrap") is None:
        return False
    command = [*_bubblewrap(Limits()), sys.executable, "-S", "-c", ""]
    tried = subprocess.run(  # noqa: S603
        command, capture_output=True, check=False, timeout=60
    )
    return tried.returncode == 0


def _environment() -> dict[str, str]:
    """Nothing of our own environment, and one thread for everything."""
    threads = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    kept = ("SYSTEMROOT",) if sys.platform == "win32" else ()
    return {
        **{name: os.environ[name] for name in kept if name in os.environ},
        **dict.fromkeys(threads, "1"),
        "PATH": os.defpath,
        "HOME": "/tmp",  # noqa: S108 - of the box, not ours
        "LANG": "C.UTF-8",
        "MPLBACKEND": "Agg",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _command(strength: Strength, limits: Limits) -> list[str]:
    python = [sys.executable, "-m", "seq2seq_lib.grading.box"]
    return (
        [*_bubblewrap(limits), *python] if strength is Strength.BUBBLEWRAP else python
    )


def _places() -> list[Path]:
    """Every directory that Python, PyTorch and this library are read from."""
    places = {Path(prefix) for prefix in (sys.prefix, sys.base_prefix)}
    places |= {place.resolve() for place in places} | {ROOT}
    for package in ("torch", "numpy", "jaxtyping"):
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            places.add(Path(spec.origin).parent.parent)
    usr = Path("/usr")
    return sorted(p for p in places if usr not in (p, *p.parents))


def _bubblewrap(limits: Limits) -> list[str]:
    command = ["bwrap", "--die-with-parent", "--new-session"]
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--hostname", "box"]
    if os.geteuid() == 0:
        # To become another user, which is the first thing that the box does.
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID"]
        command += ["--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-user", "--uid", "65534", "--gid", "65534"]
    command += ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if Path(name).is_symlink():
            command += ["--symlink", str(Path(name).readlink()), name]
        elif Path(name).is_dir():
            command += ["--ro-bind", name, name]
    for name in ("/etc/ld.so.cache", "/etc/alternatives", "/nix/store"):
        command += ["--ro-bind-try", name, name]
    places = _places()
    # Directories on the way are made by bubblewrap, which would let only root pass.
    for parent in sorted({p for place in places for p in place.parents} - {Path("/")}):
        command += ["--perms", "0755", "--dir", str(parent)]
    for place in map(str, places):
        command += ["--ro-bind", place, place]
    size = ["--perms", "1777", "--size", str(limits.file)]
    if EXERCISES.is_dir():
        command += ["--size", "4096", "--tmpfs", str(EXERCISES)]
        command += ["--remount-ro", str(EXERCISES)]
    command += ["--proc", "/proc", "--dev", "/dev"]
    command += [*size, "--tmpfs", "/dev/shm", *size, "--tmpfs", "/tmp"]  # noqa: S108
    command += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]  # noqa: S108
    return [*command, "--"]
