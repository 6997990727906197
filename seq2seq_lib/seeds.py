"""Seeds that depend only on what they are for, so that runs can be repeated."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_in_force = threading.local()


def mixed_seed(*numbers: int) -> int:
    """One well-mixed seed from several small numbers, the same on every machine.

    >>> mixed_seed(0, 1) == mixed_seed(0, 1), mixed_seed(0, 1) == mixed_seed(1, 0)
    (True, False)
    """
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


def generator(*numbers: int) -> torch.Generator:
    """A random generator of its own, seeded with ``mixed_seed``."""
    return torch.Generator().manual_seed(mixed_seed(*numbers))


@contextmanager
def drawing_from(source: torch.Generator) -> Iterator[None]:
    """Let the library's modules draw from this generator, in this thread, inside.

    Threads that shared one generator would draw in whatever order they came.
    """
    before = thread_generator()
    _in_force.generator = source
    try:
        yield
    finally:
        _in_force.generator = before


def thread_generator() -> torch.Generator | None:
    """The generator in force in this thread; ``None`` for PyTorch's own.

    >>> source = generator(7)
    >>> with drawing_from(source):
    ...     print(thread_generator() is source)
    True
    >>> print(thread_generator())
    None
    """
    found: torch.Generator | None = getattr(_in_force, "generator", None)
    return found
