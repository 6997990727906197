"""Chapter 4: how a model is trained, as one frozen configuration."""

from dataclasses import dataclass
from enum import StrEnum

from seq2seq_lib.training.schedule import Schedule


class Precision(StrEnum):
    """In which number format matrix products are computed; weights stay float32."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained.

    Attributes:
        steps: how many updates of the weights.
        accumulate: how many batches are summed up for one update, for those that do
            not fit into memory at once.
        learning_rate: the highest one.
        schedule: how it falls.
        warmup: over how many steps it rises first.
        weight_decay: AdamW's, on matrices only.
        clip: the largest gradient norm; 0 for no limit.
        label_smoothing: ε of the loss.
        scheduled_sampling: how often a decoder input is the model's own choice at the
            end of training; the share grows linearly from 0.
        distillation: how much of the loss compares with what a teacher believes; the
            rest compares with the target. Needs a teacher.
        precision: number format of the products; float32 on a device that does not
            compute in this one.
        seed: of dropout and sampling. The seed of the batches is their own.
        evaluate_every: steps between two evaluations.
        checkpoint_every: steps between two checkpoints.
        patience: stop after this many evaluations without a better one; 0 for never.
        monitor: the metric that says which evaluation is better. If it is given, the
            model ends with the weights that were best; else with the last ones.
        higher_is_better: whether the monitored metric should grow.
    """

    steps: int
    accumulate: int = 1
    learning_rate: float = 1e-3
    schedule: Schedule = Schedule.COSINE
    warmup: int = 0
    weight_decay: float = 0.01
    clip: float = 1.0
    label_smoothing: float = 0.0
    scheduled_sampling: float = 0.0
    distillation: float = 0.0
    precision: Precision = Precision.FLOAT32
    seed: int = 0
    evaluate_every: int = 1000
    checkpoint_every: int = 1000
    patience: int = 0
    monitor: str = ""
    higher_is_better: bool = False

    def __post_init__(self) -> None:
        for name in ("steps", "accumulate", "evaluate_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: expected at least 1.")
        for name in ("warmup", "weight_decay", "clip", "seed", "patience"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)}: expected 0 or more.")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate={self.learning_rate}: expected above 0.")
        for name in ("label_smoothing", "scheduled_sampling", "distillation"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)}: expected 0 to 1.")
        if self.distillation and self.scheduled_sampling:
            raise ValueError(
                f"distillation={self.distillation} with scheduled_sampling="
                f"{self.scheduled_sampling}: a teacher's soft targets belong to the "
                "prefixes of the targets. Set one of them to 0."
            )
        if self.patience and not self.monitor:
            raise ValueError(
                f"patience={self.patience} needs monitor, the name of a metric that "
                "evaluate returns."
            )
