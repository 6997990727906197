"""Submissions that try to fool, stop or rob the grader: each gets what it deserves.

Every one answers q1 of exercise 6 rightly and holds something hostile beside it. The
honest part keeps its points, the hostile part earns none, and the grader goes on.
"""

# ruff: noqa: ISC004 - hostile code is written line by line

import ast
import time
from pathlib import Path

import pytest

from seq2seq_lib.grading.exercise import exercises
from seq2seq_lib.grading.sandbox import Box, Limits, strongest
from seq2seq_lib.grading.session import grade
from seq2seq_lib.grading.submission import Submission, plain_python

pytestmark = pytest.mark.usefixtures("sandbox")
ATTENTION = exercises()["06_attention"]
# Two seconds are for what never ends by itself. What needs time to go wrong, such as
# filling a gigabyte, gets the usual limits: on a slow machine it needs more.
SHORT = Limits(cpu=2)
HONEST = """
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
"""


def graded(*cells, limits=None, secret="public"):
    plain = [plain_python(cell) for cell in cells]
    handed_in = Submission(Path("x.ipynb"), "Eve", plain, ATTENTION.name, "")
    return grade(
        handed_in, ATTENTION, strength=strongest(), limits=limits, secret=secret
    )


def earned(result):
    points = {}
    for outcome in result.outcomes:
        points[outcome.question] = points.get(outcome.question, 0) + outcome.earned
    return {question: n for question, n in points.items() if n}


def processes():
    """The command lines of everything that runs on this machine."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().decode(errors="replace")
        except OSError:
            continue


# What stands at the top level of a cell, and what the notes then say.
CELLS = {
    "exit": ("import os\nos._exit(0)", "ended the Python process"),
    "sys.exit": ("import sys\nsys.exit(0)", "SystemExit"),
    "crash": ("import ctypes\nctypes.string_at(0)", "ended the Python process"),
    "kill all": ("import os\nos.kill(-1, 9)", "ProcessLookupError"),
    "kill the parent": ("import os\nos.kill(os.getppid(), 9)", "PermissionError"),
    "memory bomb": (
        "hoard = []\nwhile True:\n    hoard.append(bytearray(1 << 26))",
        "MemoryError",
    ),
    "files in memory": (
        "import os\nfor n in range(999):\n"
        "    os.write(os.memfd_create(str(n)), bytes(1 << 20))",
        "Too many open files",
    ),
    "fork bomb": ("import os\nwhile True:\n    os.fork()", "BlockingIOError"),
    "thread bomb": (
        "import threading, time\nwhile True:\n"
        "    threading.Thread(target=time.sleep, args=(99,), daemon=True).start()",
        "can't start new thread",
    ),
    "disk bomb": (
        "with open('/tmp/big', 'wb') as file:\n"
        "    while True:\n        file.write(bytes(1 << 20))",
        "OSError",
    ),
    "network": (
        "import socket\nsocket.create_connection(('1.1.1.1', 53), timeout=3)",
        "Network is unreachable",
    ),
    "rewriting the tests": (
        "from pathlib import Path\nimport seq2seq_lib\n"
        "place = Path(seq2seq_lib.__file__).parent / 'grading'\n"
        "(place / 'checks.py').write_text('')",
        "Read-only file system",
    ),
    "reading the tests": (
        "from seq2seq_lib.grading.exercise import exercises\n"
        "exercises()['06_attention']",
        "KeyError",
    ),
    "raising the limits": (
        "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
        "not allowed to raise maximum limit",
    ),
    "becoming root": ("import os\nos.setuid(0)", "PermissionError"),
    "an error that cannot be printed": (
        "class E(BaseException):\n    def __str__(self):\n        raise SystemExit\n"
        "raise E",
        "raised E",
    ),
    "an error with a huge name": ("raise type('E' * 10**7, (Exception,), {})", "EEEE"),
}


@pytest.mark.parametrize("cell, said", CELLS.values(), ids=CELLS)
def test_a_hostile_cell_costs_nothing_but_itself(cell, said):
    result = graded(cell, HONEST)
    assert earned(result) == {"q1": 6}
    (note,) = result.notes
    assert said in note


def test_an_endless_loop_in_a_cell_is_stopped():
    result = graded("while True:\n    pass", HONEST, limits=SHORT)
    assert earned(result) == {"q1": 6}
    (note,) = result.notes
    assert "computed for longer than 2 seconds" in note


def test_what_a_cell_defines_counts_although_it_never_ends():
    result = graded(f"{HONEST}\nwhile True:\n    pass", limits=SHORT)
    assert earned(result) == {"q1": 6}
    assert "only its definitions count" in result.notes[0]


def test_a_loop_that_ignores_signals_is_stopped_by_the_clock():
    ignore = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
    loop = "while True:\n    try:\n        while True: pass\n    except: pass"
    result = graded(ignore + loop, HONEST, limits=Limits(cpu=2, wall=20.0))
    assert earned(result) == {"q1": 6}
    assert "took longer than 20 seconds" in result.notes[0]


# A wrong q4, with something that should make it pass, and what it is told.
FORGED = """
import os, sys
def kernel_regression(query, key, value, width):
    frame = sys._getframe()
    while "request" not in frame.f_locals:
        frame = frame.f_back
    import json
    body = json.dumps({"id": frame.f_locals["request"]["id"], "value": 1}).encode()
    for number in range(3, 20):
        try:
            os.write(number, len(body).to_bytes(4, "big") + body)
        except OSError:
            pass
    return query
"""
FUNCTIONS = {
    "exit": (
        "import os\ndef kernel_regression(*a):\n    os._exit(0)",
        "ended the Python process",
    ),
    "patched comparisons": (
        "import builtins\n"
        "torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True\n"
        "builtins.isinstance = builtins.all = lambda *a: True\n"
        "torch.Tensor.__eq__ = lambda *a: True\n"
        "def kernel_regression(query, *a):\n    return query",
        "The predictions are wrong",
    ),
    "a tensor that lies": (
        "class Liar(torch.Tensor):\n"
        "    shape = property(lambda self: Liar())\n"
        "    __eq__ = __bool__ = lambda *a: True\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, *a, **k):\n        return True\n"
        "def kernel_regression(query, *a):\n    return query.as_subclass(Liar)",
        "`kernel_regression` raised",
    ),
    "an object that is equal to all": (
        "class Equal(float):\n    __eq__ = lambda *a: True\n"
        "def kernel_regression(*a):\n    return Equal()",
        "an object of type Equal",
    ),
    "a poisoned pickle": (
        "import os\nclass Poison:\n    def __reduce__(self):\n"
        "        return os.system, ('touch /tmp/poisoned',)\n"
        "def kernel_regression(*a):\n    return [Poison()]",
        "an object of type Poison",
    ),
    "a huge reply": (
        "def kernel_regression(*a):\n    return torch.zeros(1 << 24)",
        "bytes are too many",
    ),
    "a deep reply": (
        "def kernel_regression(*a):\n    deep = []\n    deep.append(deep)\n"
        "    return deep",
        "nested deeper than",
    ),
    "a forged reply": (FORGED, "Expected a tensor of shape (2,), got int."),
    "garbage on the wire": (
        "import os\ndef kernel_regression(*a):\n    for number in range(3, 20):\n"
        "        try:\n            os.write(number, b'\\xff' * 99)\n"
        "        except OSError:\n            pass",
        "cannot be read",
    ),
    "reading ahead on the wire": (
        "import os\ndef kernel_regression(*a):\n    for number in range(3, 20):\n"
        "        try:\n            os.set_blocking(number, False)\n"
        "            os.read(number, 1 << 20)\n"
        "        except OSError:\n            pass\n    return 0",
        "Expected a tensor",
    ),
    "a fake score": (
        "def kernel_regression(*a):\n"
        '    print(\'{"score": 2000, "tests": []}\\nq4 4 of 4\')\n'
        "    open('/tmp/results.json', 'w').write('{\"score\": 2000}')\n"
        "    raise AssertionError('Full marks.')",
        "`kernel_regression` raised AssertionError: Full marks.",
    ),
    "a flood of output": (
        "def kernel_regression(*a):\n    for _ in range(300):\n"
        "        print('x' * 1000000)\n    return 1",
        "Expected a tensor",
    ),
    "an answer copied from the library's memory": (
        "import gc\ndef kernel_regression(*a):\n"
        "    found = [o for o in gc.get_objects() if type(o).__name__ == 'Check']\n"
        "    return [len(found)]",
        "Expected a tensor of shape (2,), got a list of 1.",
    ),
}


@pytest.mark.parametrize("code, said", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_hostile_function_earns_nothing(code, said):
    result = graded(HONEST, code)
    assert earned(result) == {"q1": 6}
    first = next(o for o in result.outcomes if o.question == "q4")
    assert said in first.message


def test_an_endless_loop_in_a_function_is_stopped():
    loop = "def kernel_regression(*a):\n    while True: pass"
    result = graded(HONEST, loop, limits=SHORT)
    assert earned(result) == {"q1": 6}
    messages = [o.message for o in result.outcomes if o.question == "q4"]
    assert messages
    assert all("longer than 2 seconds" in message for message in messages)


# A wrong q1 that leaves a reply behind for whoever asks next.
LEFT_BEHIND = FORGED.replace("kernel_regression(query, key, value, width)", "forge()")
DESYNCHRONISED = f"""
{LEFT_BEHIND.replace("return query", "return 0")}
calls = []
def masked_softmax(scores, mask):
    calls.append(1)
    return forge() if len(calls) == 5 else 0
"""
SOON = """
import os, threading
calls = []
def masked_softmax(scores, mask):
    calls.append(1)
    if len(calls) == 5:
        threading.Timer(0.001, os._exit, (0,)).start()
    return 0
"""
REGRESSION = """
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width**2)).softmax(dim=-1) @ value
"""


@pytest.mark.parametrize(
    "code", [DESYNCHRONISED, SOON], ids=["a reply left behind", "an exit soon"]
)
def test_what_one_answer_leaves_behind_costs_no_other(code):
    result = graded(code, REGRESSION)
    assert earned(result) == {"q4": 4}


def test_a_daemon_ends_with_its_box():
    start = (
        "import os, subprocess\n"
        "if os.fork() == 0:\n    os.setsid()\n"
        "    subprocess.Popen(['sleep', '918273'])\n    os._exit(0)\n"
        "os.wait()"
    )
    result = graded(start, HONEST)
    assert earned(result) == {"q1": 6}
    assert result.notes == []
    deadline = time.monotonic() + 60  # the kernel ends them, when it finds the time
    while any("918273" in line for line in processes()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_nothing_of_the_grader_can_be_read(monkeypatch, tmp_path):
    monkeypatch.setenv("SEQ2SEQ_SECRET", "top secret")
    other = tmp_path / "other.ipynb"
    other.write_text("another submission")
    look = (
        "import os\nfrom pathlib import Path\n"
        f"places = {[str(other), str(Path(__file__).parents[2] / 'exercises')]!r}\n"
        "seen = [p for p in places if Path(p).exists()]\n"
        "lines = [Path(f'/proc/{n}/cmdline').read_text() for n in os.listdir('/proc')"
        " if n.isdigit()]\n"
        "raise ValueError([seen, 'SEQ2SEQ_SECRET' in os.environ,"
        " 'secret' in ' '.join(lines), Path.home().name])"
    )
    result = graded(look, HONEST)
    assert earned(result) == {"q1": 6}
    assert result.notes == ["Code cell 1 raised ValueError: [[], False, False, 'tmp']."]


# Remembers what it was called with, and says it where words are shown.
TELLTALE = [
    "seen = []\n"
    + HONEST.replace(
        "    if not", "    seen.append(scores.flatten()[:4].tolist())\n    if not"
    ),
    "def attention(*arguments):\n    raise ValueError('seen: %s' % seen[-1:])",
]
# Keeps what it was called with beyond the end of its box, and reads it in the next.
KEYRING = [
    "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
    + HONEST.replace(
        "    if not",
        "    data = b'kept: ' + repr(scores.flatten()[:4].tolist()).encode()\n"
        "    libc.syscall(248, b'user', b'hidden', data, len(data), -3)\n"
        "    if scores.dim() != 2 or len(scores) > 2:\n        os._exit(0)\n    if not",
    ),
    "data = ctypes.create_string_buffer(300)\n"
    "key = libc.syscall(250, 10, -3, b'user', b'hidden', 0)\n"
    "libc.syscall(250, 11, key, data, 300, 0)\n"
    "raise ValueError(data.value.decode() or 'nothing')",
]


def test_hidden_inputs_are_not_told_in_a_public_check():
    ours, theirs = (
        [o.message for o in graded(*TELLTALE, secret=secret).outcomes if not o.hidden]
        for secret in ("of the class", "of another class")
    )
    assert any("seen: [[" in message for message in ours)
    assert ours == theirs  # all that was seen so far are public inputs


def test_hidden_inputs_do_not_outlive_their_box():
    result = graded(*KEYRING, secret="of the class")
    assert any("raised ValueError" in note for note in result.notes)
    other = graded(*KEYRING, secret="of another class")
    assert result.notes == other.notes
    assert not any("kept" in note for note in result.notes)


def test_cells_that_wait_share_one_allowance(monkeypatch):
    asked, ask = [], Box.ask

    def counted(box, **request):
        asked.append(request)
        return ask(box, **request)

    monkeypatch.setattr(Box, "ask", counted)
    cells = ["import time\ntime.sleep(3)"] * 40
    result = graded(HONEST, *cells, limits=Limits(total=4.0))
    assert len(asked) < 20
    assert not earned(result)
    assert "4 seconds in all" in result.outcomes[0].message


def test_many_cells_that_fail_are_read_a_few_times_each(monkeypatch):
    read, parse = [], ast.parse

    def counted(source, *rest, **options):
        read.append(source)
        return parse(source, *rest, **options)

    monkeypatch.setattr(ast, "parse", counted)
    cells = [f"#{n}\n" + "a\n" * 9 for n in range(60)]
    result = graded(HONEST, *cells)
    assert earned(result)["q1"] == 6
    assert len(read) < 10 * len(cells)


def test_a_line_in_the_table_is_not_forged():
    forged = "x.\\n  total                                21 of 21"
    result = graded(HONEST, f"raise ValueError({forged!r})".replace("\\\\n", "\\n"))
    assert any("21 of 21" in note for note in result.notes)
    assert not any("\n" in note for note in result.notes)
