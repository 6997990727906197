"""Files that say the same thing in several places say the same thing."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def run(*command, cwd=ROOT, **more):
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, **more
    )


def read_yaml(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def locked():
    """The versions of the lock file, which pins every line exactly."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = map(Requirement, lines)
    return {canonicalize_name(pin.name): str(pin.specifier) for pin in pins}


def declared():
    """Every dependency of pyproject.toml, that of its extras too."""
    extras = PROJECT["optional-dependencies"].values()
    lists = [PROJECT["dependencies"], *extras]
    requirements = (Requirement(line) for lines in lists for line in lines)
    return [r for r in requirements if r.name != PROJECT["name"]]


@pytest.mark.parametrize("requirement", declared(), ids=str)
def test_the_lock_pins_every_dependency_within_its_range(requirement):
    pin = locked()[canonicalize_name(requirement.name)]
    assert re.fullmatch(r"==[\w.]+", pin), "an exact version, without a local build"
    assert requirement.specifier.contains(pin.removeprefix("=="), prereleases=True)


def test_the_lock_pins_exact_versions_only():
    assert all(re.fullmatch(r"==[\w.]+", pin) for pin in locked().values())
    assert locked()["torch"] == "==2.13.0"


def test_dev_brings_every_other_extra():
    dev = map(Requirement, PROJECT["optional-dependencies"]["dev"])
    (own,) = (r for r in dev if r.name == PROJECT["name"])
    assert own.extras == set(PROJECT["optional-dependencies"]) - {"dev"}


def test_conda_gets_the_python_and_the_packages_of_the_lock():
    python, pip, packages = read_yaml("environment.yml")["dependencies"]
    assert pip == "pip"
    version = python.removeprefix("python=")
    assert version in SpecifierSet(PROJECT["requires-python"])
    workflow = read_yaml(".github/workflows/ci.yml")["jobs"]
    (setup,) = (
        s for s in workflow["everything"]["steps"] if "python" in str(s.get("with"))
    )
    assert version == setup["with"]["python-version"]
    assert version in workflow["library"]["strategy"]["matrix"]["python"]
    assert packages == {"pip": ["--constraint requirements.lock", "--editable .[dev]"]}


def test_the_wheel_holds_every_file_of_the_library(tmp_path):
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    done = run(*pip, "--no-build-isolation", "--wheel-dir", str(tmp_path), str(ROOT))
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    packed = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    files = (ROOT / PROJECT["name"]).rglob("*")
    here = {f.relative_to(ROOT).as_posix() for f in files if f.is_file()}
    here = {name for name in here if "__pycache__" not in name}
    assert packed == here
    assert "seq2seq_lib/py.typed" in packed


@pytest.fixture
def elsewhere(tmp_path):
    """A copy of all files with an address, which now names another repository."""
    copies = "README.md CITATION.cff CONTRIBUTING.md CHANGELOG.md pyproject.toml"
    programs = " ".join(f".ci/{path.name}" for path in (ROOT / ".ci").glob("*.py"))
    more = f"{programs} book/_config.yml Makefile"
    for name in f"{copies} {more}".split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    title = nbformat.v4.new_markdown_cell("# 1 A title", id="title")
    notebook = nbformat.v4.new_notebook(cells=[title])
    nbformat.write(notebook, tmp_path / "book" / "01_one.ipynb")
    return tmp_path


def address(directory, *options):
    return run(sys.executable, str(directory / ".ci" / "address.py"), *options)


def test_copies_of_the_address_agree():
    checked = address(ROOT, "--check")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_copies_follow_the_address(elsewhere):
    assert address(elsewhere).returncode == 0  # the notebook gets its set-up cell
    old = (elsewhere / "book" / "_config.yml").read_text(encoding="utf-8")
    new = old.replace("OWNER/seq2seq-course", "jane/sounds").replace(
        "branch: main", "branch: trunk"
    )
    assert new != old
    (elsewhere / "book" / "_config.yml").write_text(new, encoding="utf-8")

    checked = address(elsewhere, "--check")
    assert checked.returncode == 1
    named = {line.split()[0] for line in checked.stdout.splitlines()}
    copies = "README.md CITATION.cff CONTRIBUTING.md CHANGELOG.md pyproject.toml"
    assert named == {*copies.split(), str(Path("book", "01_one.ipynb"))}

    assert address(elsewhere).returncode == 0
    assert address(elsewhere, "--check").returncode == 0
    for name in named:
        text = (elsewhere / name).read_text(encoding="utf-8")
        assert "OWNER" not in text
        assert "/main/" not in text
        assert "github.com/jane/sounds" in text
    assert "jane.github.io/sounds/" in (elsewhere / "README.md").read_text("utf-8")


def test_copies_follow_the_version(elsewhere):
    path = elsewhere / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    old = f'version = "{PROJECT["version"]}"'
    path.write_text(text.replace(old, 'version = "7.8.9"'), encoding="utf-8")
    assert address(elsewhere).returncode == 0
    assert "\nversion: 7.8.9\n" in (elsewhere / "CITATION.cff").read_text("utf-8")
    assert "seq2seq-course@v7.8.9" in (elsewhere / "README.md").read_text("utf-8")
    notebook = nbformat.read(elsewhere / "book" / "01_one.ipynb", as_version=4)
    assert notebook.cells[0].source == "# 1 A title"
    assert "seq2seq-course@v7.8.9" in notebook.cells[1].source


def test_an_address_elsewhere_than_on_github_is_refused(elsewhere):
    path = elsewhere / "book" / "_config.yml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("seq2seq-course\n", "seq2seq-course.git/\n"), "utf-8")
    refused = address(elsewhere)
    assert refused.returncode == 1
    assert "expected https://github.com/OWNER/NAME" in refused.stderr


def test_the_changelog_knows_the_version():
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{PROJECT['version']}]" in log
    assert f"\n[{PROJECT['version']}]: https://" in log


def test_the_code_of_the_readme_runs(capsys):
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})
    assert re.fullmatch(r"\[.*\]\n", capsys.readouterr().out)


def test_files_that_the_readme_links_to_exist():
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_maps_the_chapters_of_the_book():
    contents = read_yaml("book/_toc.yml")
    files = [
        chapter["file"] for part in contents["parts"] for chapter in part["chapters"]
    ]
    linked = re.findall(r"(?m)^\| (?:\d+ )?\| \[[^]]+\]\(book/(\w+)\.(\w+)\)", README)
    assert [name for name, _ in linked] == [contents["root"], *files]
    assert len(re.findall(r"(?m)^\| \d+ \| ", README)) == 13
    for name, kind in linked:
        assert (ROOT / "book" / f"{name}.{kind}").exists()
        if kind == "ipynb":
            assert f"/blob/main/book/{name}.ipynb)" in README


def test_make_lists_its_targets():
    listed = set(re.findall(r"(?m)^  make ([a-z-]+) +\w", run("make").stdout))
    expected = (
        "setup book serve lab data test test-portable test-slow check format notebooks "
        "bench clean"
    )
    assert listed >= set(expected.split())


def test_make_sets_up_again_only_when_the_pins_change(tmp_path):
    def is_set_up():
        return run("make", "--question", "setup", cwd=tmp_path).returncode == 0

    for name in ("Makefile", "requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
        os.utime(tmp_path / name, (1000, 1000))
    assert not is_set_up()
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".ready").touch()
    os.utime(tmp_path / ".venv" / ".ready", (2000, 2000))
    assert is_set_up()
    os.utime(tmp_path / "requirements.lock", (3000, 3000))
    assert not is_set_up()


def test_a_notebook_in_a_folder_of_the_book_is_run_like_all_others(elsewhere):
    lab = elsewhere / "book" / "labs" / "01_more.ipynb"
    lab.parent.mkdir()
    title = nbformat.v4.new_markdown_cell("# More", id="title")
    cell = nbformat.v4.new_code_cell("6 * 7", id="product")
    nbformat.write(nbformat.v4.new_notebook(cells=[title, cell]), lab)
    here = {"cwd": elsewhere, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    make = ["make", "--old-file=.venv/.ready", f"BIN={Path(sys.executable).parent}"]

    stored = run(*make, "notebooks", **here)
    assert stored.returncode == 0, stored.stdout + stored.stderr
    cells = nbformat.read(lab, as_version=4).cells
    assert "seq2seq-course@v" in cells[1].source  # the set-up cell was put in
    assert cells[2].outputs[0].data["text/plain"] == "42"
    for target in ("test", "check"):
        planned = run(*make, "--dry-run", target, **here).stdout
        assert "book/01_one.ipynb book/labs/01_more.ipynb" in planned
    workflow = (ROOT / ".github" / "workflows" / "colab.yml").read_text("utf-8")
    assert "in $(python3 .ci/pages.py)" in workflow
