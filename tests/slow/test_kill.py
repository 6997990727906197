"""A training that is killed outright goes on from its last checkpoint, bit for bit."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress

import needs
import psutil
import pytest

pytestmark = needs.system(
    sys.platform != "win32", "Windows has no SIGKILL; the files are written alike"
)

RECIPE = """
[data]
corpus = "toy-copy"
budget = 256
development_words = 20

[model]
model = "RNNSeq2Seq"
width = 16

[training]
steps = 120
learning_rate = 5e-3
evaluate_every = 30
checkpoint_every = 3
monitor = "per"
"""
TRAIN = """
import sys
from seq2seq_lib.cli import main
sys.exit(main(["train", sys.argv[1], "--directory", sys.argv[2], "--quiet"]))
"""
# Dies inside the writing of a file: when half of it is written, before it has its
# name, or just after.
DIE_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
moment, countdown = sys.argv[3], int(sys.argv[4])

def die_in(original):
    def replacement(*arguments, **options):
        global countdown
        countdown -= 1
        if countdown == 0 and moment == "half":
            descriptor = arguments[0]
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        if countdown == 0 and moment != "after":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if countdown == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return replacement

if moment == "half":
    os.fsync = die_in(os.fsync)
else:
    Path.replace = die_in(Path.replace)
"""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE)
    return path


def start(recipe, directory, code=TRAIN, *more):
    # one thread: the order of sums, and so the last bits, must not vary
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", code, str(recipe), str(directory), *more],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def finish(recipe, directory):
    process = start(recipe, directory)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return left_in(directory)


def left_in(directory):
    history = json.loads((directory / "history.json").read_text())
    for row in history["rows"]:
        del row["seconds"]
    return (directory / "model.safetensors").read_bytes(), history


@pytest.fixture(scope="module")
def unbroken(recipe, tmp_path_factory):
    return finish(recipe, tmp_path_factory.mktemp("unbroken"))


def kill_at_a_random_moment(recipe, directory, seed):
    """Returns whether the process was still alive when it was killed."""
    process = start(recipe, directory)
    process.stderr.readline()  # it says where the run is kept, and begins
    time.sleep(random.Random(seed).uniform(0, 3))
    alive = process.poll() is None
    process.kill()
    process.communicate()
    return alive


@pytest.mark.parametrize("seed", range(3))
def test_killed_at_any_moment(recipe, unbroken, tmp_path, seed):
    kill_at_a_random_moment(recipe, tmp_path, seed)
    assert finish(recipe, tmp_path) == unbroken


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 23))
def test_killed_at_many_moments(recipe, unbroken, tmp_path, seed):
    for again in range(2):
        kill_at_a_random_moment(recipe, tmp_path, 100 * seed + again)
    assert finish(recipe, tmp_path) == unbroken


@pytest.mark.parametrize(
    "moment, countdown", [("half", "1"), ("before", "7"), ("after", "7")]
)
def test_killed_while_a_checkpoint_is_written(
    recipe, unbroken, tmp_path, moment, countdown
):
    process = start(recipe, tmp_path, DIE_WHILE_WRITING + TRAIN, moment, countdown)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert finish(recipe, tmp_path) == unbroken
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"checkpoint.safetensors", "model.safetensors", "history.json"}


@pytest.fixture(scope="module")
def taught(recipe, tmp_path_factory):
    """A recipe with a teacher, which is asked before the first step."""
    folder = tmp_path_factory.mktemp("taught")
    finish(recipe, folder / "teacher")
    teacher = folder / "teacher" / "model.safetensors"
    text = RECIPE.replace("steps = 120", "steps = 40\ndistillation = 0.5")
    path = folder / "taught.toml"
    path.write_text(f"{text}\n[distillation]\nteachers = ['{teacher}']\n")
    return path


@pytest.fixture(scope="module")
def taught_unbroken(taught, tmp_path_factory):
    return finish(taught, tmp_path_factory.mktemp("taught-unbroken"))


@pytest.mark.parametrize(
    "moment, countdown", [("half", "1"), ("before", "1"), ("after", "1"), ("half", "4")]
)
def test_killed_while_a_teacher_is_written_down_or_learned_from(
    taught, taught_unbroken, tmp_path, moment, countdown
):
    process = start(taught, tmp_path, DIE_WHILE_WRITING + TRAIN, moment, countdown)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert finish(taught, tmp_path) == taught_unbroken
    *left, soft_targets = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["checkpoint.safetensors", "history.json", "model.safetensors"]
    assert soft_targets.startswith("soft-targets-")


def torchrun(recipe, directory):
    """Two processes, both of which are started again when one of them died."""
    with socket.socket() as server:
        server.bind(("localhost", 0))
        port = server.getsockname()[1]
    command = ["torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
    command += ["--max-restarts", 3, "--monitor-interval", 0.1]
    command += ["-m", "seq2seq_lib", "train", recipe, "--directory", directory]
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, command), "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def train_together(recipe, directory, *, kills=0, seed=0):
    """Train in two processes, one of which is killed at so many random moments.

    Returns what the run left and printed, and how often it was started again.
    """
    agent = torchrun(recipe, directory)
    random_moment = random.Random(seed)
    errors = []
    for line in agent.stderr:
        errors.append(line)
        if kills and "kept in" in line:  # a first process has imported all, and begins
            kills -= 1
            time.sleep(random_moment.uniform(0, 0.5))
            with suppress(psutil.NoSuchProcess):  # it was faster
                random_moment.choice(psutil.Process(agent.pid).children()).kill()
    printed, _ = agent.communicate()
    assert agent.returncode == 0, "".join(errors)
    starts = sum("kept in" in line for line in errors)
    return left_in(directory), printed, starts - 1


@pytest.fixture(scope="module")
def unbroken_together(recipe, tmp_path_factory):
    left, printed, restarts = train_together(recipe, tmp_path_factory.mktemp("two"))
    assert restarts == 0
    assert json.loads(printed)["steps"] == 120  # the second process prints nothing
    return left


def test_torchrun_starts_again_what_was_killed(recipe, unbroken_together, tmp_path):
    left, _, restarts = train_together(recipe, tmp_path, kills=3)
    assert left == unbroken_together
    assert restarts  # at least one kill came before the end


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 8))
def test_torchrun_starts_again_what_was_often_killed(
    recipe, unbroken_together, tmp_path, seed
):
    # with the test above, more than twenty moments
    left, _, _ = train_together(recipe, tmp_path, kills=3, seed=seed)
    assert left == unbroken_together


@pytest.mark.slow
def test_torchrun_starts_again_what_learned_from_a_teacher(taught, tmp_path):
    unbroken, _, restarts = train_together(taught, tmp_path / "unbroken")
    assert restarts == 0
    left, _, _ = train_together(taught, tmp_path / "killed", kills=2)
    assert left == unbroken
    kept = [
        [*(tmp_path / run).glob("soft-targets-*")] for run in ("unbroken", "killed")
    ]
    first, second = (path.read_bytes() for (path,) in kept)
    assert first == second
