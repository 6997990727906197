"""Copies the repository's address from book/_config.yml to every file that needs it.

Without arguments the copies are rewritten. With ``--check`` nothing is written: the
files that disagree are named, and the exit code is 1 if there are any.
"""

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from pages import notebooks

from seq2seq_lib.files import write_whole

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "book" / "_config.yml"
# In these files every GitHub address is our own.
PAGES = (
    "README.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "pyproject.toml",
)
NAME = r"[\w.-]*\w"

SETUP_TAGS = ["remove-cell", "setup"]
SETUP_CELL = """\
# Colab and a downloaded notebook lack the course library: this installs its release.
import importlib.util
import os

if importlib.util.find_spec("seq2seq_lib") is None:
    release = "git+{url}@v{version}"
    source = os.environ.get("SEQ2SEQ_SOURCE", release)
    %pip install -q "seq2seq_lib[course] @ {{source}}"\
"""


@dataclass(frozen=True)
class Address:
    """Where the repository lives, and which release readers install."""

    owner: str
    name: str
    branch: str
    version: str

    @property
    def url(self) -> str:
        """The repository's page."""
        return f"https://github.com/{self.owner}/{self.name}"

    @property
    def setup_cell(self) -> str:
        """The source of every notebook's first code cell."""
        return SETUP_CELL.format(url=self.url, version=self.version)

    def corrected(self, text: str) -> str:
        """The text with every address of a repository replaced by this one."""
        path = f"{self.owner}/{self.name}"
        colab, binder = "colab.research.google.com/github", "mybinder.org/v2/gh"
        for pattern, replacement in (
            (rf"//github\.com/{NAME}/{NAME}", f"//github.com/{path}"),
            (rf"(//github\.com/{path}/(?:blob|tree))/{NAME}", rf"\1/{self.branch}"),
            (rf"(//github\.com/{path}@v){NAME}", rf"\g<1>{self.version}"),
            (
                rf"//{colab}/{NAME}/{NAME}/blob/{NAME}",
                f"//{colab}/{path}/blob/{self.branch}",
            ),
            (rf"//{binder}/{NAME}/{NAME}/{NAME}", f"//{binder}/{path}/{self.branch}"),
            (rf"//{NAME}\.github\.io/{NAME}", f"//{self.owner}.github.io/{self.name}"),
            (r"(?m)^version: .*$", f"version: {self.version}"),
        ):
            text = re.sub(pattern, replacement, text)
        return text


def read_address() -> Address:
    """The address of book/_config.yml and the version of pyproject.toml.

    Raises:
        ValueError: the address is not that of a GitHub repository.
    """
    repository = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))["repository"]
    parts = re.fullmatch(rf"https://github\.com/({NAME})/({NAME})", repository["url"])
    if parts is None:
        raise ValueError(
            f"repository.url in {CONFIG.name} is {repository['url']!r}: expected "
            "https://github.com/OWNER/NAME, without a slash or .git at the end."
        )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return Address(*parts.groups(), repository["branch"], project["project"]["version"])


def corrected_notebook(text: str, address: Address) -> str:
    """The notebook with its set-up cell as it should be, put in where it is missing."""
    notebook = json.loads(text)
    cells = notebook["cells"]
    tagged = (c for c in cells if "setup" in c["metadata"].get("tags", []))
    setup = next(tagged, None)
    if setup is None:
        setup = {"id": "setup", "cell_type": "code", "execution_count": None}
        setup |= {"metadata": {}, "outputs": [], "source": []}
        # After the title, so that the notebook still opens with it.
        cells.insert(1 if cells and cells[0]["cell_type"] == "markdown" else 0, setup)
    wanted = {"source": address.setup_cell.splitlines(keepends=True)}
    wanted["metadata"] = {"tags": SETUP_TAGS}
    if setup | wanted == setup:
        return text
    setup |= wanted
    # As nbformat writes it.
    return f"{json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)}\n"


def copies(address: Address) -> Iterator[tuple[Path, str, str]]:
    """Every file that holds a copy, with its text and the text it should have."""
    for path in map(ROOT.joinpath, PAGES):
        text = path.read_text(encoding="utf-8")
        yield path, text, address.corrected(text)
    for path in notebooks():
        text = path.read_text(encoding="utf-8")
        yield path, text, corrected_notebook(text, address)


def main() -> int:
    """Write or check the copies."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say what disagrees")
    check = parser.parse_args().check
    try:
        wrong = [copy for copy in copies(read_address()) if copy[1] != copy[2]]
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    for path, _, expected in wrong:
        name = path.relative_to(ROOT)
        if check:
            print(
                f"{name} disagrees with {CONFIG.relative_to(ROOT)}: run `make format`"
            )
        else:
            write_whole(path, expected)
            print(f"{name}: address written")
    return int(check and bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
