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

    def to_json(self) -> str:
        """The history as JSON text."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "History":
        """Rebuild what ``to_json`` wrote."""
        values = json.loads(text)
        return cls([Row(**row) for row in values["rows"]], values["best"])
