"""A new machine that has torch, as Colab has, but not the course."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
# What Colab has before anybody installs anything, of that which the chapters need.
THERE = ("torch", "numpy", "matplotlib", "ipykernel")
COLABS_PIP = "pip==24.1.2"
INSTALLED = Path(sysconfig.get_path("purelib"))


def required(names):
    """These distributions, and all that they need."""
    found, asked = {}, list(names)
    while asked:
        distribution = importlib.metadata.distribution(asked.pop())
        if distribution.name not in found:
            found[distribution.name] = distribution
            needs = map(Requirement, distribution.requires or [])
            asked += [
                need.name
                for need in needs
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return found.values()


def linked(source, target):
    """Put a file where it should be, without a second copy of it where possible."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # the directories are on different disks
        shutil.copy2(source, target)


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Machine:
    """A fresh virtual environment with an empty directory to work in."""

    def __init__(self, home):
        self.home, self.work = home, home / "content"
        self.work.mkdir()
        environment = home / "environment"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        self.python = environment / "bin" / "python"
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.packages = Path(self.run("-c", ask).strip())
        for distribution in required(THERE):
            for file in distribution.files:
                if not file.is_relative_to("../"):  # programs of the old environment
                    linked(INSTALLED / file, self.packages / file)

    def variables(self, **more):
        """What a program on this machine knows: nothing of the repository."""
        mine = ("SEQ2SEQ_", "PYTHON", "VIRTUAL_ENV", "JUPYTER", "MPL", "XDG_")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(mine)}
        cache = subprocess.check_output([sys.executable, "-m", "pip", "cache", "dir"])
        kept |= {"PIP_CACHE_DIR": cache.decode().strip()}  # or every wheel comes anew
        return kept | {"XDG_CACHE_HOME": str(self.home), "OMP_NUM_THREADS": "1"} | more

    def run(self, *arguments):
        """What Python prints here."""
        done = subprocess.run(
            [self.python, *arguments],
            cwd=self.work,
            env=self.variables(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def execute(self, notebook, source):
        """Run a notebook from its first cell to its last."""
        manager = KernelManager(kernel_name="python3")
        manager.kernel_spec.argv[0] = str(self.python)
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=None,
            resources={"metadata": {"path": str(self.work)}},
        )
        variables = self.variables(SEQ2SEQ_SOURCE=source)
        return client.execute(env=variables, cleanup_kc=True)

    def files_of_torch(self):
        """Every file of torch, and when it was written. Bytecode may come and go."""
        files = [*self.packages.glob("torch/**/*"), *self.packages.glob("torch-*/*")]
        return {
            file: file.stat().st_mtime_ns for file in files if file.suffix != ".pyc"
        }
