"""The grader: what crosses the wire, what is read of a notebook, how it is judged."""

import base64
import contextlib
import io
import json
import os
import re
import sys
import time
from pathlib import Path

import needs
import pytest
import torch

from seq2seq_lib.grading import submission, wire
from seq2seq_lib.grading.checks import local, run_checks, shown
from seq2seq_lib.grading.exercise import Exercise, exercises, extra_checks
from seq2seq_lib.grading.expect import same
from seq2seq_lib.grading.sandbox import Box, BoxLostError, Limits, Strength, strongest
from seq2seq_lib.grading.session import grade
from seq2seq_lib.grading.submission import RefusedError, Submission

ATTENTION = exercises()["06_attention"]

# Two of the answers of exercise 6, right and short.
SOFTMAX = """
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
"""
REGRESSION = """
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width**2)).softmax(dim=-1) @ value
"""
FULL = {"q1": 6, "q4": 4}


def handed_in(*cells, named="06_attention"):
    plain = [submission.plain_python(cell) for cell in cells]
    return Submission(Path("answers.ipynb"), "Ada", plain, named, "")


def earned(graded):
    """Points by question, those without any left out."""
    points = {}
    for outcome in graded.outcomes:
        points[outcome.question] = points.get(outcome.question, 0) + outcome.earned
    return {question: n for question, n in points.items() if n}


def graded(*cells, limits=None):
    return grade(handed_in(*cells), ATTENTION, strength=strongest(), limits=limits)


# --- the wire


VALUES = [
    None,
    [1, 2.5, "ä", True],
    ({"a": (1,), 3: None}, []),
    torch.randn(2, 0, 3),
    torch.tensor(3.0),
    torch.tensor([[True], [False]]),
    torch.arange(6, dtype=torch.int16).reshape(2, 3).mT,
    torch.tensor([0.1, -2.5, 3e9, 0.0]).to(torch.bfloat16),
    torch.tensor([torch.nan, torch.inf], dtype=torch.float64),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_what_crosses_comes_out_as_it_went_in(value):
    stream = io.BytesIO()
    wire.write_frame(stream, {"value": wire.encode(value)})
    stream.seek(0)
    back = wire.decode(wire.read_frame(stream)["value"])
    assert same(back, value)
    if isinstance(value, torch.Tensor):
        assert back.dtype is value.dtype


@pytest.mark.parametrize("value", [{1}, object(), print, 1j, torch.ones(2) + 1j])
def test_what_is_not_data_does_not_cross(value):
    with pytest.raises(wire.WireError):
        wire.encode([value])


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def tensor(**changes):
    return {"tensor": "float32", "shape": [1], "data": "AAAAAA=="} | changes


LIES = {
    "too deep": nested(50),
    "an object": {"a": 1},
    "two things in one": {"tuple": [], "dict": []},
    "no pairs": {"dict": [[1, 2, 3]]},
    "keys that are lists": {"dict": [[[1], 2]]},
    "a type that is none": tensor(tensor="os.system"),
    "a negative size": tensor(shape=[-1, -1]),
    "a huge shape": tensor(shape=[1 << 40, 0]),
    "a size that is true": tensor(shape=[True]),
    "more data than shape": tensor(data="AAAAAAAAAAA="),
    "less data than shape": tensor(shape=[1000]),
    "no base64": tensor(data="????"),
    "many numbers": tensor(
        tensor="uint8", shape=[1 << 19], data=base64.b64encode(bytes(1 << 19)).decode()
    ),
    "many axes": tensor(shape=[1] * 60),
    "more to it": tensor(more=1),
    "other values than booleans have": tensor(
        tensor="bool", shape=[4], data="AgMEBQ=="
    ),
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_are_not_decoded(lie):
    with pytest.raises(wire.WireError):
        wire.decode(lie)


@pytest.mark.parametrize(
    "frame, error",
    [
        (b"", EOFError),
        (b"\0\0", EOFError),
        (b"\0\0\0\x05[1]", EOFError),
        (b"\xff\xff\xff\xff", wire.WireError),
        (b"\0\0\0\x02\xff\xfe", wire.WireError),
        (b"\0\0\0\x03[1]", wire.WireError),
        (b"\0\x01\x00\x00" + b"[" * 0x10000, wire.WireError),
        (b"\0\0\x20\x00" + b"9" * 0x2000, wire.WireError),
    ],
    ids="nothing half-length half-body huge bytes list deep 8192-digits".split(),
)
def test_what_is_no_frame_is_not_read(frame, error):
    with pytest.raises(error):
        wire.read_frame(io.BytesIO(frame))


# --- what is handed in


def notebook(*cells, **metadata):
    made = [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def written(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return submission.read(path, "Ada")


CODE = {"cell_type": "code", "source": "x" * 2001}


def test_a_renamed_notebook_without_metadata_is_recognised_by_its_functions(tmp_path):
    found = written(tmp_path / "my homework (2).ipynb", notebook(SOFTMAX))
    assert found.named is None
    assert submission.exercise_of(found, exercises()) is ATTENTION


def test_a_notebook_knows_its_exercise(tmp_path):
    named = notebook(
        "x = 1", seq2seq={"exercise": "06_attention"}, kernelspec={"name": 7}
    )
    found = written(tmp_path / "x.ipynb", named)
    assert submission.exercise_of(found, exercises()) is ATTENTION


def test_answers_count_for_what_they_answer(tmp_path):
    named = notebook(SOFTMAX, seq2seq={"exercise": "01_sequences"})
    found = written(tmp_path / "x.ipynb", named)
    assert submission.exercise_of(found, exercises()) is ATTENTION


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "not a notebook"),
        (b"PK\x03\x04", "not a notebook"),
        (b"[" * 100_000, "not a notebook"),
        (b"[]", "no cells"),
        (b'{"worksheets": []}', "no cells"),
        (b'{"cells": [], "metadata": 3}', "no exercise is recognised"),
        (b'{"cells": [3, {"cell_type": "code", "source": [1]}]}', "no exercise"),
        (b" " * (21 << 20), "more than 20 MB"),
        (json.dumps({"cells": [CODE] * 2001}).encode(), "2,001 cells"),
        (json.dumps({"cells": [CODE] * 50}).encode(), "100,050 characters of code"),
    ],
    ids=[
        "empty",
        "a zip",
        "deep",
        "a list",
        "format 3",
        "no cells",
        "odd cells",
        "large",
        "many cells",
        "much code",
    ],
)
def test_what_is_no_notebook_is_refused_clearly(tmp_path, content, said):
    path = tmp_path / "x.ipynb"
    path.write_bytes(content)
    with pytest.raises(RefusedError, match=said):
        submission.exercise_of(submission.read(path, "Ada"), exercises())


@needs.system(sys.platform != "win32", "Windows has no such pipes")
def test_links_and_pipes_are_refused(tmp_path):
    (tmp_path / "other.ipynb").write_text(json.dumps(notebook(SOFTMAX)))
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "other.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    with pytest.raises(RefusedError, match="symbolic link"):
        submission.read(tmp_path / "link.ipynb", "Ada")
    with pytest.raises(RefusedError, match="not a regular file"):
        submission.read(tmp_path / "pipe.ipynb", "Ada")
    with pytest.raises(RefusedError, match="cannot be read"):
        submission.read(tmp_path / "none.ipynb", "Ada")


@pytest.mark.parametrize(
    "cell, plain",
    [
        ("x = 1", "x = 1"),
        ("%%time\nx = 1", "pass\nx = 1"),
        ("%%bash\nrm -rf /", ""),
        ("if a:\n    !pip install b\nx = !ls", "if a:\n    pass\npass"),
        ('"""\n% of all\n"""', '"""\n% of all\n"""'),
        ("grader.check('q1')\ny = 2", "pass\ny = 2"),
        ("from otter import Notebook\nprint('grader')", "pass\nprint('grader')"),
        ("def f(:", "def f(:"),
        ("f?\n  g.h??\nx = 1 if f else 2", "pass\n  pass\nx = 1 if f else 2"),
        ("a, b = %time f()", "pass"),
    ],
)
def test_only_plain_python_is_left_of_a_cell(cell, plain):
    assert submission.plain_python(cell) == plain


@pytest.mark.parametrize(
    "cell",
    ["(\n" + " " * 90_000, "(\n" + "a " * 45_000, "a\n" * 50_000, "(" * 90_000],
    ids=["spaces", "words", "statements", "brackets"],
)
def test_code_that_is_hard_to_read_takes_no_time(cell):
    before = time.process_time()
    submission.plain_python(cell)
    submission.functions(cell)
    assert time.process_time() - before < 30  # it was hours, with the square of spaces


def test_definitions_are_what_is_left_of_a_cell_that_does_not_end():
    cell = "import math\nN = 3\ndef f():\n    return N\nwhile True:\n    pass"
    assert (
        submission.definitions(cell).split()
        == "import math N = 3 def f(): return N pass".split()
    )


def test_extra_checks_are_read_by_question():
    found = extra_checks(
        "# %% hidden q2\na = 1\n# %% hidden q1\nb = 2\n# %% hidden q2\nc = 3\n"
    )
    assert found.keys() == {"q1", "q2"}
    assert "a = 1" in found["q2"]
    assert "c = 3" in found["q2"]
    with pytest.raises(ValueError, match="expected '# %% hidden q1'"):
        extra_checks("# %% q1\n")


def test_an_exercise_survives_json():
    assert Exercise.from_json(ATTENTION.to_json()) == ATTENTION


def test_what_is_shown_is_harmless():
    assert shown("a\x1b]0;b\x07 0xdeadbeef") == "a?]0;b? 0x…"
    assert len(shown("x" * 10_000)) <= 500


# --- judged in a box


@pytest.mark.usefixtures("sandbox")
def test_cells_out_of_order_and_edited_given_cells_count_in_full():
    found = graded(
        "answer = helper(2)",  # before its definition
        "import torch as np\nfrom math import inf as Tensor",  # an edited given cell
        SOFTMAX.replace("scores,", "scores: Float[Tensor, 'B T S'],"),
        "%matplotlib inline\ngrader.check('q1')",
        "def helper(x):\n    return x",
        "1 / 0",
        "def broken(:",
        REGRESSION,
    )
    assert earned(found) == FULL
    assert [note.partition(" raised ")[0] for note in found.notes] == [
        "Code cell 3",
        "Code cell 6",
        "Code cell 7",
    ]
    missing = [o for o in found.outcomes if o.question == "q2"]
    assert "no function `attention`" in missing[0].message
    assert found.strength is Strength.BUBBLEWRAP


@pytest.mark.usefixtures("sandbox")
def test_of_two_answers_the_last_counts_and_an_error_takes_none_away():
    found = graded(
        "def masked_softmax(scores, mask):\n    return 0\nprint(later)",
        f"1 / 0\n{SOFTMAX}",
        "later = 1",
        f"import sys\nsys.exit()\n{REGRESSION}",
    )
    assert earned(found) == FULL
    assert [note.split()[2] for note in found.notes] == ["2", "4"]


@pytest.mark.usefixtures("sandbox")
def test_grading_twice_gives_the_same():
    cells = (
        "import random\nR = random.random()",
        SOFTMAX,
        "def kernel_regression(*a):\n    return torch.rand(2) + R + hash('a') % 7",
        "def attention(*a):\n    raise KeyError(object())",
    )
    first, second = graded(*cells), graded(*cells)
    assert first == second
    assert earned(first) == {"q1": 6}
    raised = [o.message for o in first.outcomes if o.question == "q2"]
    assert raised[0].startswith("`attention` raised KeyError: ")
    assert "0x…" in raised[0]
    # a hidden check repeats nothing of what the student's code says
    assert raised[-1] == "`attention` raised KeyError"


def test_a_hidden_check_tells_nothing_of_its_inputs():
    answers = {
        "as an error": "raise type(f'E{scores[0, 0, 0]}', (Exception,), {})",
        "as a shape": "return torch.zeros(int(scores.abs().sum() * 100), 7, 3)",
        "as a length": "return [0] * 123",
        "in what cannot cross": "return type(f'E{scores[0, 0, 0]}', (), {})()",
    }
    for code in answers.values():
        names = {"torch": torch}
        exec(f"def masked_softmax(scores, mask):\n    {code}", names)
        outcomes = run_checks(ATTENTION, local(names), secret="of the class")
        hidden = [o.message for o in outcomes if o.question == "q1" and o.hidden]
        assert len(hidden) == 2
        assert not any(re.search(r"\d", text) for text in hidden)
        assert all(hidden)


@pytest.mark.usefixtures("sandbox")
def test_the_box_sees_nothing_but_python():
    box = Box(Strength.BUBBLEWRAP, Limits(cpu=5))
    seen = """
import os, socket
from pathlib import Path
import seq2seq_lib.grading
tests = os.listdir(Path(seq2seq_lib.grading.__file__).parent / "exercises")
places = [p for p in ("/", "/tmp", "/dev", "/dev/shm") if os.access(p, os.W_OK)]
try:
    socket.create_connection(("1.1.1.1", 53), 2)
    network = "open"
except OSError as error:
    network = error.errno
root = Path(seq2seq_lib.__file__).parent.parent
others = [p for p in os.listdir("/proc") if p.isdigit() and int(p) > 2]
raise ValueError([tests, places, network, (root / "exercises").exists(), others])
"""
    reply = box.ask(cell=seen, name="cell")
    box.close()
    assert reply["message"] == "[[], ['/tmp', '/dev/shm'], 101, False, []]"


@pytest.mark.usefixtures("sandbox")
def test_a_box_that_is_lost_says_why():
    box = Box(Strength.BUBBLEWRAP, Limits(cpu=1))
    with pytest.raises(BoxLostError, match="computed for longer than 1 seconds"):
        box.ask(cell="while True: pass", name="cell")


ASK = "import os\nraise ValueError(os.getuid())"


@needs.system(
    sys.platform == "linux" and os.geteuid() == 0, "only root can be another user"
)
def test_another_user_has_limits_and_leaves_nothing_behind():
    box = Box(Strength.USER, Limits(cpu=2, processes=4))
    assert int(box.ask(cell=ASK, name="cell")["message"]) > 1_000_000
    start = (
        "import os\nif os.fork() == 0:\n    os.setsid()\n"
        "    os.execlp('sleep', *'sleep 918274'.split())"
    )
    assert box.ask(cell=start, name="cell")["value"] is None
    bomb = box.ask(cell="import os\nwhile True: os.fork()", name="cell")
    assert bomb["error"] == "BlockingIOError"
    box.close()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            assert b"918274" not in path.read_bytes()


def test_without_a_sandbox_the_score_is_for_practice():
    found = grade(handed_in(SOFTMAX), ATTENTION, strength=Strength.NONE)
    assert earned(found) == {"q1": 6}
    assert "practice score" in found.strength.meaning


def test_a_submission_has_only_so_much_time():
    limits = Limits(total=0.0)
    found = grade(handed_in(SOFTMAX), ATTENTION, strength=strongest(), limits=limits)
    assert found.earned == 0
    assert "it had 0 seconds in all" in found.outcomes[0].message


# --- ways to write a cell that cost an honest student nothing


HARMLESS = {
    "a module that is missing": "import nowhere_to_be_found\n{answer}",
    "shown, and a negative constant": "display(3)\n1 / 0\nSIGN = -1.0\n"
    "OTHERS: list = [1, (2, 3)]\n{answer}",
    "indented as a whole": "{indented}",
    "a command over two lines": "!pip install -q \\\n    einops\n{answer}",
    "a command without a sign": "pip install -q einops\n{answer}",
    "the name of ours": "practice = 1.0\ngrader = [practice]\n{answer}",
    "two statements in a line": "import otter; SIGN = -1.0\n{answer}",
    "a check in the same line": "grader.check('q1'); SIGN = -1.0\n{answer}",
    "a remainder in brackets": "%matplotlib inline\nn = (7\n     % 4)\n{answer}",
    "compiled": "@torch.jit.script\ndef double(x):\n    return 2 * x\n{answer}",
}
USING = """
def masked_softmax(scores, mask):
    sign = globals().get("SIGN", -1.0)
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(~mask, sign * torch.inf).softmax(dim=-1)
"""


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("name", HARMLESS)
def test_a_harmless_cell_costs_nothing(name):
    indented = "\n".join(f"    {line}" for line in USING.splitlines())
    cell = HARMLESS[name].format(answer=USING, indented=indented)
    assert earned(graded(cell)) == {"q1": FULL["q1"]}


@pytest.mark.usefixtures("sandbox")
def test_what_a_cell_imports_from_the_future_counts_for_all():
    answer = SOFTMAX.replace("(scores, mask)", "(scores: Shown, mask: Hidden)", 1)
    assert earned(graded(answer)) == {}  # there are no such names
    assert earned(graded("from __future__ import annotations", answer)) == {"q1": 6}


@pytest.mark.usefixtures("sandbox")
def test_an_answer_above_the_stub_counts(tmp_path):
    stub = 'def masked_softmax(scores, mask):\n    """Write it."""\n'
    stub += '    raise NotImplementedError("write masked_softmax")'
    cells = [{"cell_type": "code", "source": cell} for cell in (SOFTMAX, stub)]
    file = tmp_path / "answers.ipynb"
    file.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4}))
    result = grade(
        submission.read(file, "Ada"), ATTENTION, strength=Strength.BUBBLEWRAP
    )
    assert earned(result) == {"q1": FULL["q1"]}


def test_errors_in_hidden_checks_have_few_names():
    namespace = {}
    exec(
        "def kernel_regression(*_): raise type('copyright', (Exception,), {})",
        namespace,
    )
    outcomes = run_checks(ATTENTION, local(namespace))
    said = {o.message for o in outcomes if o.question == "q4"}
    assert any("copyright" in message for message in said)
    hidden = [o.message for o in outcomes if o.question == "q4" and o.hidden]
    assert hidden
    assert not any("copyright" in message for message in hidden)


def test_a_dictionary_with_keys_that_collide_is_refused():
    pairs = [[n * (2**61 - 1), 0] for n in range(5000)]
    with pytest.raises(wire.WireError, match="more than 1,000 pairs"):
        wire.decode({"dict": pairs})
