"""What a test needs and a machine may lack: the one way in which tests are skipped.

Where ``SEQ2SEQ_MUST_RUN=1``, as in continuous integration on Linux, a test that lacks
a corpus, a package, the browser, the sandbox or the network fails instead.
"""

import os
import re
import shutil
from collections import Counter
from importlib.util import find_spec

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
REMEDIES = {
    "a corpus": "make data",
    "a package": "make setup",
    "the browser": "install chromium",
    "the sandbox": "install bubblewrap, where user namespaces are allowed",
    "the network": "try again where pip and git find their servers",
    "another toolkit": "make bench-peers",
}
OPTIONAL = "another toolkit"  # lives in an environment of its own


def lacking(what, detail):
    """Skip the test, or fail it where every test must run."""
    reason = f"needs {what} ({detail}): {REMEDIES[what]}"
    must_run = os.environ.get("SEQ2SEQ_MUST_RUN") == "1" and what != OPTIONAL
    (pytest.fail if must_run else pytest.skip)(reason)


def system(suits, reason):
    """A mark: the test runs only where the system suits it, and fails nowhere."""
    return pytest.mark.skipif(not suits, reason=reason)


def corpus(name):
    """Every file that the corpus of this name is downloaded from."""
    from seq2seq_lib.data.corpora import CorpusName, remote_files
    from seq2seq_lib.data.download import find_local

    for file in remote_files(CorpusName(name)):
        if not find_local(file):
            lacking("a corpus", f"{file.name} is not in SEQ2SEQ_DATA, nor cached")


def package(*names):
    """Packages that hold data, which ``seq2seq_lib[course]`` installs."""
    for name in names:
        if find_spec(name) is None:
            lacking("a package", name)


def browser():
    """The path of a browser."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    return program or lacking("the browser", f"none of {', '.join(BROWSERS)}")


def sandbox(*enough):
    """A sandbox of one of these strengths; bubblewrap, if none is named."""
    from seq2seq_lib.grading.sandbox import Strength, strongest

    if strongest() not in (enough or [Strength.BUBBLEWRAP]):
        lacking("the sandbox", f"the strongest that works is {strongest().name}")


def summary(reasons):
    """How many tests were skipped for want of what, and which command brings it."""
    ours = [r for r in reasons if r.startswith("needs ")]
    wants = Counter(re.sub(r" \(.*\): ", ": ", reason) for reason in ours)
    lines = [f"skipped, {want}: {number} tests" for want, number in wants.most_common()]
    if others := len(reasons) - len(ours):
        lines.append(f"skipped for other reasons (see pytest -rs): {others} tests")
    return lines


def pytest_terminal_summary(terminalreporter, config):
    """Say what was skipped, and note it down: `make test` repeats it at its end."""
    skipped = terminalreporter.stats.get("skipped", [])
    lines = summary([r.longrepr[2].removeprefix("Skipped: ") for r in skipped])
    for line in lines:
        terminalreporter.write_line(line, yellow=True)
    if hasattr(config, "cache"):
        note = config.cache.mkdir("skipped") / "summary"
        note.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
