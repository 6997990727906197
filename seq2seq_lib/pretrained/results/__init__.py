"""Results that took long to compute, stored as files that the book draws."""

import json
from importlib.resources import files
from typing import Any


def result_text(name: str) -> str:
    """The text of a stored result.

    Args:
        name: its path below this package, such as ``bench/growth.json``.

    Raises:
        ValueError: there is no such result.
    """
    place = files(__name__).joinpath(name)
    if not place.is_file():
        raise ValueError(
            f"there is no result {name!r}: give a path below {__name__}, such as "
            "'bench/growth.json'."
        )
    return place.read_text(encoding="utf-8")


def read_result(name: str) -> Any:
    """A stored JSON result, as dictionaries and lists."""
    return json.loads(result_text(name))
