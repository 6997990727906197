"""Chapter 4: the training loop, for any model that keeps the contract.

The random numbers of a step depend on the seed and the number of the step only, and
so does the order of the batches. A run that is stopped and resumed therefore goes on
as if nothing had happened.
"""

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from seq2seq_lib.data.batch import Batch, Batches
from seq2seq_lib.device import devices
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.seeds import mixed_seed
from seq2seq_lib.training.checkpoint import (
    load_weights,
    read_tensors,
    weights_of,
    write_tensors,
)
from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.history import History, Row
from seq2seq_lib.training.loss import cross_entropy
from seq2seq_lib.training.schedule import learning_rate_factor
from seq2seq_lib.training.scheduled_sampling import sampled_forward

RUN_FORMAT = "seq2seq_lib run 1"
CHECKPOINT = "checkpoint.safetensors"

Evaluate = Callable[[EncoderDecoder], Mapping[str, float]]


def fit(
    model: EncoderDecoder,
    batches: Batches,
    config: TrainingConfig,
    *,
    evaluate: Evaluate | None = None,
    directory: Path | str | None = None,
    progress: bool = True,
) -> History:
    """Train a model, on the device its weights are on.

    Args:
        model: any encoder–decoder; it is changed in place.
        batches: what to learn from.
        config: how to train.
        evaluate: gives the metrics of the model at hand.
        directory: where checkpoints are kept. If it holds one of this very run, the
            run goes on from there.
        progress: draw a progress bar.

    Returns:
        one row for every evaluation, the last after the last step.

    Raises:
        ValueError: the directory holds another run, or a metric is missing.
        FloatingPointError: the loss is no longer a number; the last checkpoint, from
            before, is kept.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("this model has no weights to train.")
    run = _Run(model, batches, config, evaluate, Path(directory) if directory else None)
    training = model.training
    with _own_randomness():
        run.resume()
        run.train(progress=progress)
    model.train(training)
    return run.history


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Put the random state of every device back afterwards."""
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng([]))
        for device in devices():
            if device.type != "cpu":
                fork = torch.random.fork_rng(device_type=device.type)
                stack.enter_context(fork)
        yield


class _Run:
    def __init__(
        self,
        model: EncoderDecoder,
        batches: Batches,
        config: TrainingConfig,
        evaluate: Evaluate | None,
        directory: Path | None,
    ) -> None:
        self.model = model
        self.batches = batches
        self.config = config
        self.evaluate = evaluate
        self.checkpoint = directory / CHECKPOINT if directory else None
        self.history = History()
        self.best_weights: dict[str, Tensor] = {}
        self.step = self.epoch = self.position = self.counted = 0
        self.seconds = 0.0
        self.loss = torch.zeros((), device=model.device)  # summed since the last row
        decayed = [p for p in model.parameters() if p.requires_grad and p.dim() > 1]
        others = [p for p in model.parameters() if p.requires_grad and p.dim() <= 1]
        self.optimizer = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": config.weight_decay},
                {"params": others, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(
            model.device.type, enabled=config.precision is Precision.FLOAT16
        )

    def train(self, *, progress: bool) -> None:
        bar = tqdm(
            total=self.config.steps,
            initial=self.step,
            disable=not progress,
            unit="step",
            dynamic_ncols=True,
        )
        began = time.monotonic() - self.seconds
        with bar:
            while not self.finished():
                for batch in self.batches.epoch(self.epoch, start=self.position):
                    self.learn(batch.to(self.model.device))
                    self.position += 1
                    bar.update()
                    if self.due(50) or self.due(self.config.evaluate_every):
                        bar.set_postfix_str(f"loss {self.mean_loss():.3f}")
                    self.seconds = time.monotonic() - began
                    self.report()
                    if self.finished():
                        break
                else:
                    self.epoch, self.position = self.epoch + 1, 0
        if self.best_weights:
            load_weights(self.model, self.best_weights, origin="the best evaluation")

    def finished(self) -> bool:
        patience, best = self.config.patience, self.history.best
        waited = len(self.history.rows) - 1 - best if best is not None else 0
        return self.step >= self.config.steps or 0 < patience <= waited

    def due(self, every: int) -> bool:
        return self.step % every == 0 or self.step == self.config.steps

    def learn(self, batch: Batch) -> None:
        """One step: loss, gradients, update."""
        config, model = self.config, self.model
        torch.manual_seed(mixed_seed(config.seed, self.step))
        model.train()
        share = config.scheduled_sampling * self.step / config.steps
        with torch.autocast(
            model.device.type,
            dtype=getattr(torch, config.precision.value),
            enabled=config.precision is not Precision.FLOAT32,
        ):
            outputs = sampled_forward(model, batch, share) if share else model(batch)
        loss = cross_entropy(
            outputs,
            batch.target,
            batch.target_mask,
            label_smoothing=config.label_smoothing,
        )
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
        self.scaler.unscale_(self.optimizer)
        if config.clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.loss += loss.detach()
        self.counted += 1
        self.step += 1

    @property
    def learning_rate(self) -> float:
        config = self.config
        return config.learning_rate * learning_rate_factor(
            config.schedule, self.step, warmup=config.warmup, steps=config.steps
        )

    def mean_loss(self) -> float:
        mean = float(self.loss) / self.counted
        if not math.isfinite(mean):
            raise self.not_a_number(f"the loss is {mean}")
        return mean

    def not_a_number(self, problem: str) -> FloatingPointError:
        kept = self.checkpoint is not None and self.checkpoint.exists()
        return FloatingPointError(
            f"{problem} at step {self.step}: try a lower learning rate than "
            f"{self.config.learning_rate}, a longer warm-up, or clipping. "
            + (f"The last good checkpoint is {self.checkpoint}." if kept else "")
        )

    def report(self) -> None:
        """Evaluate and save, when it is time to."""
        if self.due(self.config.evaluate_every):
            measured = self.evaluate(self.model) if self.evaluate else {}
            metrics = {name: float(value) for name, value in measured.items()}
            rate = self.optimizer.param_groups[0]["lr"]
            self.history.rows.append(
                Row(
                    self.step,
                    self.epoch + 1,
                    self.mean_loss(),
                    rate,
                    self.seconds,
                    metrics,
                )
            )
            self.loss.zero_()
            self.counted = 0
            self.keep_best()
        if self.checkpoint and (
            self.due(self.config.checkpoint_every) or self.finished()
        ):
            self.save(self.checkpoint)

    def keep_best(self) -> None:
        name, rows = self.config.monitor, self.history.rows
        if not name:
            return
        if name not in rows[-1].metrics:
            raise ValueError(
                f"monitor={name!r}, but evaluate returned "
                f"{sorted(rows[-1].metrics) or 'nothing'}: name one of those."
            )
        sign = -1 if self.config.higher_is_better else 1
        scores = [sign * row.metrics[name] for row in rows]
        best = math.inf if self.history.best is None else scores[self.history.best]
        if scores[-1] < best:  # which a NaN never is
            self.history.best = len(rows) - 1
            self.best_weights = {
                n: t.clone() for n, t in weights_of(self.model).items()
            }

    @cached_property
    def identity(self) -> dict[str, str]:
        """What must be the same for a run to go on from a checkpoint."""
        config = self.model.config
        content = json.dumps([tuple(pair) for pair in self.batches.pairs])
        data = {
            "pairs": len(self.batches.pairs),
            "sha256": hashlib.sha256(content.encode()).hexdigest(),
            "budget": self.batches.budget,
            "seed": self.batches.seed,
        }
        return {
            "model": config.to_json() if config else type(self.model).__name__,
            "training": json.dumps(dataclasses.asdict(self.config)),
            "data": json.dumps(data),
        }

    def save(self, path: Path) -> None:
        if self.counted:
            self.mean_loss()  # raises rather than save what is no longer a number
        weights = weights_of(self.model)
        if not all(bool(tensor.isfinite().all()) for tensor in weights.values()):
            raise self.not_a_number("a weight is infinite or not a number")
        state = self.optimizer.state_dict()["state"]
        tensors = {
            "loss": self.loss,
            **{f"model.{n}": t for n, t in weights.items()},
            **{f"best.{n}": t for n, t in self.best_weights.items()},
            **{f"optimizer.{i}.{n}": t for i in state for n, t in state[i].items()},
        }
        position = {
            name: getattr(self, name)
            for name in ("step", "epoch", "position", "counted", "seconds")
        }
        header = {
            "format": RUN_FORMAT,
            **self.identity,
            "position": json.dumps(position),
            "scaler": json.dumps(self.scaler.state_dict()),
            "history": self.history.to_json(),
        }
        write_tensors(path, tensors, header)

    def resume(self) -> None:
        if self.checkpoint is None:
            return
        for half_written in self.checkpoint.parent.glob(f".{CHECKPOINT}.*"):
            half_written.unlink()  # a run was killed while it wrote this
        if not self.checkpoint.exists():
            return
        tensors, header = read_tensors(self.checkpoint, RUN_FORMAT)
        for name, expected in self.identity.items():
            if header[name] != expected:
                raise ValueError(
                    f"{self.checkpoint} is a checkpoint of another run. Its {name} is "
                    f"{header[name]}, but this run has {expected}. Choose another "
                    "directory, or delete that one to start over."
                )

        def under(prefix: str) -> dict[str, Tensor]:
            return {
                name.removeprefix(prefix): tensor.to(self.model.device)
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }

        load_weights(self.model, under("model."), origin=str(self.checkpoint))
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
