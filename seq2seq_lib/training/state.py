"""Chapter 4: what a training run remembers, in memory and on disk."""

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from seq2seq_lib.data.batch import Batches
from seq2seq_lib.data.frames import checksum
from seq2seq_lib.interface import EncoderDecoder, ModelConfig
from seq2seq_lib.models.saved import (
    load_weights,
    read_tensors,
    weights_of,
    write_tensors,
)
from seq2seq_lib.training.config import TrainingConfig
from seq2seq_lib.training.history import History
from seq2seq_lib.training.objective import Objective

RUN_FORMAT = "seq2seq_lib run 1"
CHECKPOINT = "checkpoint.safetensors"

COUNTERS = ("step", "epoch", "position", "counted", "seconds")


@dataclass
class RunState:
    """All that decides how a run goes on, and what it has seen so far.

    Attributes:
        model: with its weights.
        optimizer: with its averages.
        scaler: with the scale of half precision.
        loss: summed over the steps since the last row of the history.
        counted: how many steps these were.
        step: how many steps there were in all.
        epoch: how many times all data was seen.
        position: how many batches were seen since.
        seconds: how long it took.
        history: one row for every evaluation.
        best_weights: those of the best evaluation, if a metric is monitored.
    """

    model: EncoderDecoder
    optimizer: torch.optim.Optimizer
    scaler: torch.amp.GradScaler
    loss: Tensor
    counted: int = 0
    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def save(self, path: Path, identity: dict[str, str]) -> None:
        """Write a checkpoint, whole or not at all."""
        state = self.optimizer.state_dict()["state"]
        tensors = {
            "loss": self.loss,
            **{f"model.{n}": t for n, t in weights_of(self.model).items()},
            **{f"best.{n}": t for n, t in self.best_weights.items()},
            **{f"optimizer.{i}.{n}": t for i in state for n, t in state[i].items()},
        }
        header = {
            "format": RUN_FORMAT,
            **identity,
            "position": json.dumps({name: getattr(self, name) for name in COUNTERS}),
            "scaler": json.dumps(self.scaler.state_dict()),
            "history": self.history.to_json(),
        }
        write_tensors(path, tensors, header)

    def load(self, path: Path, identity: dict[str, str]) -> None:
        """Go on where a checkpoint was written.

        Raises:
            ValueError: it is damaged, or of another run.
        """
        tensors, header = read_tensors(path, RUN_FORMAT)
        for name, expected in identity.items():
            found = header.get(name, "")  # runs without a teacher did not name it
            if _with_defaults(name, found) != _with_defaults(name, expected):
                raise ValueError(
                    f"{path} is a checkpoint of another run. Its {name} is "
                    f"{found or 'none'}, but this run has {expected or 'none'}. Choose "
                    "another directory, or delete that one to start over."
                )

        def under(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): tensor.to(self.model.device)
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }

        load_weights(self.model, under("model."), origin=str(path))
        self.best_weights = under("best.")
        self.loss = tensors["loss"].to(self.model.device)
        state: dict[int, dict[str, Tensor]] = {}
        for name, tensor in under("optimizer.").items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = tensor
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": state, "param_groups": groups})
        self.scaler.load_state_dict(json.loads(header["scaler"]))
        self.history = History.from_json(header["history"])
        for name, value in json.loads(header["position"]).items():
            setattr(self, name, value)


def identity(objective: Objective, batches: Batches) -> dict[str, str]:
    """What must be the same for a run to go on from a checkpoint."""
    model, config = objective.model, objective.config
    content = json.dumps([tuple(pair) for pair in batches.pairs], default=checksum)
    data = {
        "pairs": len(batches.pairs),
        "sha256": hashlib.sha256(content.encode()).hexdigest(),
        "budget": batches.budget,
        "seed": batches.seed,
    }
    return {
        "model": model.config.to_json() if model.config else type(model).__name__,
        "training": json.dumps(dataclasses.asdict(config)),
        "data": json.dumps(data),
        "teacher": objective.teacher_sha256,
    }


def _with_defaults(name: str, text: str) -> Any:
    """A stored configuration as plain values, also those that were not stored.

    Options that the library did not have when a file was written had the effect of
    their defaults.
    """
    if name == "training":
        return {**dataclasses.asdict(TrainingConfig(steps=1)), **json.loads(text)}
    if name == "model":
        try:
            return dataclasses.asdict(ModelConfig.from_json(text))
        except ValueError:  # a model without a configuration, or of a later library
            return text
    return text
