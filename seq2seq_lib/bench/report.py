"""What a comparison leaves behind: JSON, a table, and a figure."""

import importlib.metadata
import io
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from seq2seq_lib.bench.compare import Ratio, Timing, quartiles, ratios
from seq2seq_lib.plotting import Spread, plot_bars

PACKAGES = (
    "torch",
    "transformers",
    "joeynmt",
    "OpenNMT-py",
    "fairseq",
    "d2l",
    "ctranslate2",
    "onnxruntime",
)


@dataclass(frozen=True)
class Comparison:
    """The seconds of contenders that took turns.

    Attributes:
        name: what was done.
        baseline: the contender that the others are compared with.
        threads: how many PyTorch had.
        seconds: of every contender in every round.
        missing: contenders that could not take part, and why.
    """

    name: str
    baseline: str
    threads: int
    seconds: Mapping[str, Sequence[float]]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def ratios(self) -> dict[str, Ratio]:
        """How many times faster than the baseline each contender was."""
        return ratios(self.seconds, baseline=self.baseline)

    @property
    def timings(self) -> dict[str, Timing]:
        """The seconds of a turn."""
        return {name: Timing(*quartiles(s)) for name, s in self.seconds.items()}

    def table(self) -> str:
        """The comparison as text.

        >>> seconds = {"slow": [0.2, 0.2, 0.4], "fast": [0.1, 0.1, 0.1]}
        >>> print(Comparison("work", "slow", 1, seconds, {"new": "No module"}).table())
        work (1 thread, 3 rounds)
        contender  median ms  ratio  quartiles
        slow           200.0   1.00  1.00 to 1.00
        fast           100.0   2.00  2.00 to 4.00
        missing: new (No module)
        """
        width = max(9, *map(len, self.seconds))
        rounds = len(self.seconds[self.baseline])
        threads = f"{self.threads} thread{'s' if self.threads > 1 else ''}"
        lines = [
            f"{self.name} ({threads}, {rounds} rounds)",
            f"{'contender':{width}}  median ms  ratio  quartiles",
        ]
        for name, ratio in self.ratios.items():
            median = 1000 * self.timings[name].median
            lines.append(
                f"{name:{width}}  {median:9.1f}  {ratio.median:5.2f}  "
                f"{ratio.low:.2f} to {ratio.high:.2f}"
            )
        lines += [f"missing: {name} ({why})" for name, why in self.missing.items()]
        return "\n".join(lines)

    def figure(self) -> bytes:
        """The ratios as bars with their quartiles, as SVG."""
        values = {
            name: [
                b / s for b, s in zip(self.seconds[self.baseline], turns, strict=True)
            ]
            for name, turns in self.seconds.items()
        }
        fastest = max(self.ratios, key=lambda name: self.ratios[name].median)
        ax = plot_bars(
            values,
            value_label=f"times as fast as {self.baseline}",
            name_label="",
            number_format=".2f",
            spread=Spread.QUARTILES,
            title=f"{self.name}: fastest is {fastest}",
        )
        file = io.BytesIO()
        ax.figure.canvas.print_figure(file, format="svg", bbox_inches="tight")
        return file.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a JSON file holds them; seconds to four digits."""
        return {
            "name": self.name,
            "baseline": self.baseline,
            "threads": self.threads,
            "rounds": len(self.seconds[self.baseline]),
            "contenders": {
                name: {
                    "seconds": [float(f"{s:.4g}") for s in self.seconds[name]],
                    "timing": asdict(self.timings[name]),
                    "ratio": asdict(ratio),
                }
                for name, ratio in self.ratios.items()
            },
            "missing": dict(self.missing),
        }


def setting() -> dict[str, Any]:
    """What the figures depend on beside the code."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "machine": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "python": platform.python_version(),
        "versions": versions,
    }
