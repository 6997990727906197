"""What tests and doctests share: no figure is left open for the next one."""

from collections.abc import Iterator

import matplotlib.pyplot as plt
import pytest


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    """Close what a test drew; matplotlib warns when more than twenty are open."""
    yield
    plt.close("all")
