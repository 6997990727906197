"""The commands ``seq2seq grade`` and ``seq2seq autograder``."""

import argparse
import io
import json
import os
import sys
import zipfile
from importlib.metadata import metadata, version
from pathlib import Path

from seq2seq_lib.files import cache_directory, write_whole

SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, when it builds the image of the autograder.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y bubblewrap git
apt-get install -y python3.11 python3.11-venv || apt-get install -y python3 python3-venv
"$(command -v python3.11 || command -v python3)" -m venv /opt/seq2seq
/opt/seq2seq/bin/pip install "torch=={torch}" "seq2seq_lib @ git+{url}@v{version}"
"""
RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for every submission.
cd "${AUTOGRADER:-/autograder}"
export SEQ2SEQ_SECRET="$(cat source/secret.txt 2>/dev/null || echo public)"
"${SEQ2SEQ:-/opt/seq2seq/bin/seq2seq}" grade submission --hidden source/hidden \\
  --json results/results.json$exercise
"""


def grade(command: argparse.ArgumentParser) -> None:
    """Score the notebook of an exercise, or a folder of them."""
    command.description = (
        "Run notebooks in a sandbox and score them with all checks, hidden ones too. "
        "Where there is no sandbox, the score is for practice."
    )
    command.add_argument("paths", nargs="+", type=Path, help="notebooks or folders")
    command.add_argument("--json", type=Path, help="write results for Gradescope")
    command.add_argument("--html", type=Path, help="write a page with all checks")
    command.add_argument(
        "--csv",
        type=Path,
        help="write a row for every submission, and beside it a row for every question",
    )
    command.add_argument("--exercise", help="its name (default: as the notebook says)")
    command.add_argument("--jobs", type=int, help="at a time (default: one per core)")
    command.add_argument(
        "--again", action="store_true", help="also what was graded before"
    )
    _add_secrets(command)
    command.set_defaults(run=_grade)


def autograder(command: argparse.ArgumentParser) -> None:
    """Write the zip that Gradescope wants for an assignment."""
    command.description = (
        "Write a zip to upload as an autograder, with your secret and your hidden "
        "checks in it."
    )
    command.add_argument("zip", type=Path, help="the file to write")
    command.add_argument(
        "--exercise", help="its name (default: whatever the notebooks answer)"
    )
    _add_secrets(command)
    command.set_defaults(run=_autograder)


def _add_secrets(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--secret",
        type=Path,
        metavar="FILE",
        help="holds the secret of your class, from which hidden inputs are drawn "
        "(default: the variable SEQ2SEQ_SECRET, or a public secret)",
    )
    command.add_argument(
        "--hidden",
        type=Path,
        metavar="FOLDER",
        help="holds further hidden checks, NN_topic.py for each exercise "
        "(default: the variable SEQ2SEQ_HIDDEN)",
    )


def _secret(options: argparse.Namespace) -> str | None:
    """The secret; never an argument, which every user of the machine could read."""
    if options.secret is None:
        return os.environ.get("SEQ2SEQ_SECRET") or None
    secret = str(options.secret.read_text(encoding="utf-8")).strip()
    if not secret:
        raise ValueError(f"{options.secret} is empty: write any long line into it.")
    return secret


def _hidden(options: argparse.Namespace) -> Path | None:
    named = os.environ.get("SEQ2SEQ_HIDDEN")
    folder: Path | None = options.hidden or (Path(named) if named else None)
    return folder


def _check_exercise(options: argparse.Namespace) -> None:
    from seq2seq_lib.grading.exercise import exercises

    if options.exercise is not None and options.exercise not in exercises():
        raise ValueError(
            f"--exercise {options.exercise}: expected one of {', '.join(exercises())}."
        )


def _grade(options: argparse.Namespace) -> int:
    # Other commands need none of this.
    from seq2seq_lib.grading import report
    from seq2seq_lib.grading.batch import Result, Settings, find, grade_all
    from seq2seq_lib.grading.checks import PUBLIC_SECRET
    from seq2seq_lib.grading.sandbox import strongest

    _check_exercise(options)
    jobs = options.jobs or os.cpu_count() or 1
    if jobs < 1:
        raise ValueError(f"--jobs {jobs}: expected at least 1.")
    found = find(options.paths)
    settings = Settings(
        strength=strongest(),
        secret=_secret(options) or PUBLIC_SECRET,
        hidden=_hidden(options),
        exercise=options.exercise,
        kept=None if options.again else cache_directory() / "graded",
    )
    done = 0

    def progress(result: Result) -> None:
        nonlocal done
        done += 1
        if options.csv:
            print(f"{done}/{len(found)} {report.line(result)}", file=sys.stderr)

    results = grade_all(found, settings, jobs=jobs, report=progress)
    if options.csv:
        beside = options.csv.with_name(f"{options.csv.stem}_questions.csv")
        write_whole(options.csv, report.grades(results))
        write_whole(beside, report.statistics_csv(results))
        print(f"{options.csv} and {beside} written", file=sys.stderr)
    else:
        print("\n".join(map(report.table, results)), end="")
    if options.json:
        content = json.dumps(report.gradescope(results), indent=1, ensure_ascii=False)
        write_whole(options.json, content + "\n")
    if options.html:
        write_whole(options.html, report.page(results))
    return int(any(result.graded is None for result in results))


def _autograder(options: argparse.Namespace) -> int:
    import torch

    _check_exercise(options)
    urls = dict(
        entry.split(", ", 1)
        for entry in metadata("seq2seq_lib").get_all("Project-URL") or []
    )
    setup = SETUP.format(
        torch=str(torch.__version__).partition("+")[0],
        url=urls["Repository"],
        version=version("seq2seq_lib"),
    )
    only = f" --exercise {options.exercise}" if options.exercise else ""
    files = {"setup.sh": setup, "run_autograder": RUN.replace("$exercise", only)}
    if secret := _secret(options):
        files["secret.txt"] = secret
    if folder := _hidden(options):
        for path in sorted(folder.glob("*.py")):
            files[f"hidden/{path.name}"] = path.read_text(encoding="utf-8")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16  # Gradescope runs two of them
            packed.writestr(entry, text)
    write_whole(options.zip, content.getvalue())
    print(f"{options.zip} written: {', '.join(files)}", file=sys.stderr)
    return 0
