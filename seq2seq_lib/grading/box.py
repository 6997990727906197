"""The inside of a sandbox: runs a student's cells, then their functions, on request.

Nothing here can be trusted once the first cell has run; the other side of the wire
checks all it is told. What is done here only keeps honest code safe from itself: limits
on time, memory, processes and files, the same random numbers in every call.
"""

import ast
import builtins
import codeop
import contextlib
import ctypes
import linecache
import math
import os
import platform
import random
import sys
import time
import types
from io import BufferedReader, BufferedWriter
from pathlib import Path
from typing import Any

import torch
from numpy import random as numpy_random  # numpy would load it later

from seq2seq_lib.grading.wire import WireError, decode, encode, read_frame, write_frame

if sys.platform != "win32":
    import resource

BUILTINS = dict(vars(builtins))
OPEN_FILES = 64  # files in memory count for no other limit
MESSAGE = 300
COMPILE = codeop.Compile()  # what one cell imports from __future__, others have too
COMPILE.flags = 0  # a cell that is not complete is an error
KEYCTL = {"x86_64": 250, "aarch64": 219}  # the number of the system call


def serve() -> None:
    """Answer requests from standard input until it ends."""
    requests, replies = _take_streams()
    _confine(read_frame(requests))
    module = types.ModuleType("__main__")
    vars(module).update(display=lambda *_, **__: None, get_ipython=lambda: None)
    sys.modules["__main__"] = module
    write_frame(replies, {"id": "ready"})
    process = os.getpid()
    while True:
        try:
            request = read_frame(requests)
        except EOFError:
            return
        _allow_cpu(request["seconds"])
        reply = _answer(request, vars(module))
        vars(builtins).update(BUILTINS)
        if os.getpid() != process:
            os._exit(0)  # a student's code forked, and only one may answer
        try:
            write_frame(replies, {"id": request["id"], **reply})
        except WireError as error:
            write_frame(replies, {"id": request["id"], **_described(error)})


def _take_streams() -> tuple[BufferedReader, BufferedWriter]:
    """Keep the wire, and let whatever the student prints go nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    return requests, replies


def _confine(limits: dict[str, Any]) -> None:
    """Give up everything that a student's code does not need."""
    if sys.platform == "linux" and (number := KEYCTL.get(platform.machine())):
        # Keys of the session outlive a box; a new session has none, and ends with it.
        ctypes.CDLL(None).syscall(number, 1, None)
    with contextlib.suppress(OSError):  # if memory runs out, this goes before others
        Path("/proc/self/oom_score_adj").write_text("1000")
    if limits["user"] is not None:
        os.setgroups([])
        os.setresgid(*[limits["user"]] * 3)
        os.setresuid(*[limits["user"]] * 3)
    torch.set_num_threads(1)
    if sys.platform == "win32":
        return  # where a practice score is all there is
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits["file"])
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    if limits["processes"] is not None:
        _limit(resource.RLIMIT_NPROC, limits["processes"])
    table = Path("/proc/self/statm")
    if table.exists():  # what torch itself has mapped comes on top
        mapped = int(table.read_text().split()[0]) * resource.getpagesize()
        _limit(resource.RLIMIT_AS, mapped + limits["memory"])


def _limit(kind: int, wanted: int) -> None:
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(kind, (wanted, wanted))


def _allow_cpu(seconds: int) -> None:
    if sys.platform == "win32":
        return
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = math.ceil(time.process_time()) + seconds
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _answer(request: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    random.seed(0)
    numpy_random.seed(0)  # noqa: NPY002 - what a student's code draws from
    torch.manual_seed(0)
    torch.set_default_dtype(torch.float32)
    torch.set_grad_enabled(True)
    try:
        if "cell" in request:
            _run(request["cell"], request["name"], names, each=request.get("each"))
            return {"value": None}
        if request["call"] not in names:
            return {"missing": request["call"]}
        arguments, options = decode(request["arguments"])
        return {"value": encode(names[request["call"]](*arguments, **options))}
    except BaseException as error:  # noqa: BLE001 - a student may raise anything
        return _described(error)


def _run(cell: str, name: str, names: dict[str, Any], *, each: bool | None) -> None:
    """Run a cell, or each of its statements, whatever becomes of the others."""
    # as Jupyter does, for what reads its own source
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    if not each:
        exec(COMPILE(cell, name, "exec"), names)  # noqa: S102
        return
    for statement in ast.parse(cell).body:
        tree = ast.Module([statement], [])
        with contextlib.suppress(Exception):
            exec(COMPILE(tree, name, "exec"), names)  # type: ignore[arg-type]  # noqa: S102


def _described(error: BaseException) -> dict[str, Any]:
    kind = type(error).__name__[:MESSAGE]
    try:
        return {"error": kind, "message": str(error)[:MESSAGE]}
    except BaseException:  # noqa: BLE001 - also while being printed
        return {"error": kind, "message": ""}


if __name__ == "__main__":
    serve()
