"""What every test has: checked shapes, all devices, and no clock that can fail it."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Figures are drawn without a screen, on every system.
os.environ.setdefault("MPLBACKEND", "agg")

# Before the first import of the library, in every worker of pytest-xdist too: the
# plugin option of jaxtyping never reaches the workers when it stands in pyproject.
install_import_hook("seq2seq_lib", "beartype.beartype")

from seq2seq_lib.device import devices  # noqa: E402

# Two workers with two threads each would fight over two cores.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("untimed")


@pytest.fixture(params=devices(), ids=str)
def device(request):
    """Every kind of device that this machine has."""
    return request.param
