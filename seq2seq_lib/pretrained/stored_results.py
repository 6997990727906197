"""Results that took long to compute, stored as files that the book draws."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from seq2seq_lib.files import write_whole

RESULTS = Path(str(files("seq2seq_lib.pretrained"))) / "results"


def result_text(name: str) -> str:
    """The text of a stored result.

    Args:
        name: its path below ``pretrained/results``, such as ``bench/growth.json``.

    Raises:
        ValueError: there is no such result.
    """
    path = RESULTS / name
    if not path.is_file():
        raise ValueError(
            f"there is no result {name!r}: give a path below {RESULTS}, such as "
            "'bench/growth.json'."
        )
    return path.read_text(encoding="utf-8")


def read_result(name: str) -> Any:
    """A stored JSON result, as dictionaries and lists."""
    return json.loads(result_text(name))


def result_names(folder: str, *, directory: Path = RESULTS) -> list[str]:
    """The names of the JSON results in a folder, such as ``experiments``."""
    return sorted(path.stem for path in (directory / folder).glob("*.json"))


def write_result(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result as JSON text, whole or not at all."""
    write_whole(path, json.dumps(result, indent=2, ensure_ascii=False) + "\n")
