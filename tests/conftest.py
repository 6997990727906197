"""What every test has: checked shapes, all devices, and no clock that can fail it."""

import os

import matplotlib as mpl
import pytest
import torch
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before the first import of the library, in every worker of pytest-xdist too: the
# plugin option of jaxtyping never reaches the workers when it stands in pyproject.
install_import_hook("seq2seq_lib", "beartype.beartype")

from seq2seq_lib.device import devices  # noqa: E402

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


@pytest.fixture(params=devices(), ids=str)
def device(request):
    """Every kind of device that this machine has."""
    return request.param
