"""What tests and doctests share: no figure is left open for the next one."""

import os
from collections.abc import Iterator

# Some virtual machines announce matrix units (AMX) and then refuse their instructions:
# products in bfloat16 would end Python. The kind of CPU below has bfloat16 as well.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    """Close what a test drew; matplotlib warns when more than twenty are open."""
    yield
    plt.close("all")
