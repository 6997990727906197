"""What every test has: checked shapes, all devices, and no clock that can fail it."""

import os
import subprocess
import sys
from pathlib import Path

import emulated_device  # the first backward pass makes room for devices known by then
import emulated_kernels
import matplotlib as mpl
import needs
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before the first import of the library, in every worker of pytest-xdist too: the
# plugin option of jaxtyping never reaches the workers when it stands in pyproject.
install_import_hook("seq2seq_lib", "beartype.beartype")

from seq2seq_lib.data import EOS, SubwordVocabulary  # noqa: E402
from seq2seq_lib.device import devices  # noqa: E402
from seq2seq_lib.models import LookupConfig, SavedModel  # noqa: E402

pytest_terminal_summary = needs.pytest_terminal_summary

# Figures need no screen here. Not by an environment variable, which the kernels of
# notebooks would inherit.
mpl.use("agg")

# Two workers with two threads each would fight over two cores.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def site():
    """The folder of the book, built as `make book` builds it, or found up to date."""
    import fcntl  # which Windows lacks, and where nobody asks for the book

    root = Path(__file__).parents[1]
    build = root / "book" / "_build"
    build.mkdir(exist_ok=True)
    # The packages are those that run this test: make need not look after them.
    command = ["make", "--old-file=.venv/.ready", f"BIN={Path(sys.executable).parent}"]
    with (build / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other workers wait, and find it built
        built = subprocess.run(
            [*command, "book"], cwd=root, capture_output=True, text=True, check=False
        )
    assert built.returncode == 0, built.stdout + built.stderr
    return build / "html"


@pytest.fixture
def sandbox():
    """Skips or fails the test where students' code cannot be locked in."""
    needs.sandbox()


@pytest.fixture
def emulated(monkeypatch):
    """A device that keeps the rules of a GPU, which any machine has."""
    emulated_kernels.install(monkeypatch)
    return emulated_device.DEVICE


@pytest.fixture(params=devices(), ids=str)
def real_device(request):
    """Every kind of device that this machine has."""
    return request.param


@pytest.fixture(params=[*devices(), "emulated"], ids=str)
def device(request):
    """Every kind of device that this machine has, and one that it has not."""
    if request.param == "emulated":
        return request.getfixturevalue("emulated")
    return request.param


WORDS = {"ein": "a", "hund": "dog", "rennt": "runs", "zwei": "two", "im": "in"}


@pytest.fixture(scope="module")
def dictionary():
    """Translates word by word; every word is one piece."""
    pieces = SubwordVocabulary.train(
        [word for pair in WORDS.items() for word in pair] * 9, size=60
    )
    model = LookupConfig(source_symbols=60, target_symbols=60).build()
    with torch.no_grad():
        model.decoder.letter[EOS, EOS] = 20.0
        for german, english in WORDS.items():
            (source,), (target,) = pieces.encode(german), pieces.encode(english)
            model.decoder.letter[source, target] = 20.0
    return SavedModel(model, pieces, pieces, "multi30k-de-en")


@pytest.fixture
def write(tmp_path):
    """Writes a notebook of these cells below a book of its own."""
    import nbformat
    from made_notebooks import notebook_of

    def write(*cells, name="01_one"):
        path = tmp_path / "book" / f"{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook_of(*cells), path)
        return path

    return write
