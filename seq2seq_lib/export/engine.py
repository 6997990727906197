"""What all exports share: optional engines, and the models they can take."""

import importlib
from typing import Any


def engine(name: str) -> Any:
    """Import an optional package, untyped as these are.

    Raises:
        ValueError: it is not installed; the message says what to install.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{error.name} is not installed, which this export needs: run "
            "pip install 'seq2seq_lib[export]'."
        ) from error
