"""Chapter 4: what a training run remembers of itself."""

import dataclasses
import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    """What one evaluation saw.

    Attributes:
        step: how many times the weights had been updated.
        epoch: how many times it had begun to go through the data.
        loss: mean training loss since the row before.
        learning_rate: of the last step.
        seconds: since the run began, pauses not counted.
        metrics: what ``evaluate`` returned.
    """

    step: int
    epoch: int
    loss: float
    learning_rate: float
    seconds: float
    metrics: dict[str, float]


@dataclass
class History:
    """The rows of a run, oldest first.

    Attributes:
        rows: one for each evaluation.
        best: index of the row whose weights were kept, if a metric was monitored.
    """

    rows: list[Row] = field(default_factory=list)
    best: int | None = None

    def metric(self, name: str) -> list[float]:
        """One metric over time."""
        return [row.metrics[name] for row in self.rows]

    def after(self, earlier: "History") -> "History":
        """This history as the second part of a longer one.

        Args:
            earlier: of the run whose weights this one began from.

        >>> first = History([Row(100, 2, 0.9, 1e-3, 60.0, {})])
        >>> second = History([Row(50, 1, 0.8, 1e-4, 30.0, {})])
        >>> [(row.step, row.epoch, row.seconds) for row in second.after(first).rows]
        [(100, 2, 60.0), (150, 3, 90.0)]
        """
        end = earlier.rows[-1]
        rows = [
            dataclasses.replace(
                row,
                step=end.step + row.step,
                epoch=end.epoch + row.epoch,
                seconds=end.seconds + row.seconds,
            )
            for row in self.rows
        ]
        best = None if self.best is None else len(earlier.rows) + self.best
        return History([*earlier.rows, *rows], best)

    def to_json(self) -> str:
        """The history as JSON text."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Rebuild what ``to_json`` wrote."""
        values = json.loads(text)
        return cls([Row(**row) for row in values["rows"]], values["best"])
