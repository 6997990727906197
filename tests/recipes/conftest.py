import pytest


@pytest.fixture
def device(real_device):
    """Whole runs, which take long where every operation is a call of Python."""
    return real_device
