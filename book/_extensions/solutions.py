"""Leaves the solutions of the exercises out of the book if ``SOLUTIONS`` is 0."""

import os
import re
from typing import Any

SOLUTION = re.compile(r'(?s)<details class="solution">.*?</details>\n*')


def leave_out(app: object, name: str, source: list[str]) -> None:
    """Cut the solutions out of a page before it is parsed; Sphinx calls this."""
    if name.startswith("exercises/"):
        source[0] = SOLUTION.sub("", source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    if os.environ.get("SOLUTIONS") == "0":
        app.connect("source-read", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
