"""Chapter 4: the training loop, for any model that keeps the contract.

The random numbers of a step depend on the seed and the number of the step only, and
so does the order of the batches. A run that is stopped and resumed therefore goes on
as if nothing had happened, as long as it has as many threads and processes as before.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path

import torch
from tqdm import tqdm

from seq2seq_lib.data.batch import Batch, Batches
from seq2seq_lib.device import devices
from seq2seq_lib.files import sweep
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.saved import load_weights, weights_of
from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.distributed import (
    SharedGradients,
    all_gather,
    all_reduce,
    processes,
    rank,
)
from seq2seq_lib.training.history import History, Row
from seq2seq_lib.training.objective import Objective, Teacher
from seq2seq_lib.training.schedule import learning_rate_factor
from seq2seq_lib.training.state import CHECKPOINT, RunState, identity
from seq2seq_lib.training.threads import ThreadedGradients

Evaluate = Callable[[EncoderDecoder], Mapping[str, float]]


def fit(
    model: EncoderDecoder,
    batches: Batches,
    config: TrainingConfig,
    *,
    teacher: Teacher | None = None,
    evaluate: Evaluate | None = None,
    directory: Path | str | None = None,
    progress: bool = True,
) -> History:
    """Train a model, on the device its weights are on.

    Args:
        model: any encoder–decoder; it is changed in place.
        batches: what to learn from.
        config: how to train.
        teacher: whose soft targets to learn from too, as far as
            ``config.distillation`` says.
        evaluate: gives the metrics of the model at hand. Several processes all call
            it, so that it may share the work; what the first one returns counts.
        directory: where checkpoints are kept. If it holds one of this very run, the
            run goes on from there.
        progress: draw a progress bar.

    Returns:
        one row for every evaluation, the last after the last step.

    Raises:
        ValueError: the directory holds another run, a metric is missing, or teacher
            and ``config.distillation`` do not go together.
        FloatingPointError: the loss is no longer a number; the last checkpoint, from
            before, is kept.
    """
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ValueError("this model has no weights to train.")
    run = _Run(
        Objective(model, config, teacher),
        batches,
        evaluate,
        Path(directory) if directory else None,
    )
    if run.objective.trouble and rank() == 0:
        sys.stderr.write(f"{run.objective.trouble}: training goes on in float32.\n")
    training = model.training
    with _own_randomness():
        run.resume()
        run.train(progress=progress)
    model.train(training)
    return run.state.history


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
        objective: Objective,
        batches: Batches,
        evaluate: Evaluate | None,
        directory: Path | None,
    ) -> None:
        self.objective = objective
        self.model = model = objective.model
        self.config = config = objective.config
        self.batches = batches
        self.evaluate = evaluate
        self.checkpoint = directory / CHECKPOINT if directory else None
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
            model.device.type, enabled=objective.precision is Precision.FLOAT16
        )
        loss = torch.zeros((), device=model.device)
        self.state = RunState(model, self.optimizer, self.scaler, loss)

    @cached_property
    def identity(self) -> dict[str, str]:
        return identity(self.objective, self.batches)

    def resume(self) -> None:
        if self.checkpoint is None:
            return
        if rank() == 0:
            sweep(self.checkpoint)
        if self.checkpoint.exists():
            self.state.load(self.checkpoint, self.identity)
        found = all_gather((self.state.step, self.identity))
        if any(other != found[0] for other in found):
            raise ValueError(
                f"the processes disagree on the run in {self.checkpoint.parent}: they "
                f"would go on from the steps {[step for step, _ in found]}. Give all "
                "of them the same recipe, and a directory that all machines see."
            )
        if rank():
            self.state.loss.zero_()  # the first process has the sum of all

    def train(self, *, progress: bool) -> None:
        state, config = self.state, self.config
        shared = processes() > 1
        divide = SharedGradients if shared else ThreadedGradients
        self.gradients = divide(self.objective)
        bar = tqdm(
            total=config.steps,
            initial=state.step,
            disable=not progress or rank() > 0,
            unit="step",
            dynamic_ncols=True,
        )
        began = time.monotonic() - state.seconds
        with bar:
            while not self.finished():
                batches = self.batches.epoch(state.epoch, start=state.position)
                while group := list(islice(batches, config.accumulate)):
                    self.learn(group)
                    state.position += len(group)
                    bar.update()
                    if self.due(50) or self.due(config.evaluate_every):
                        bar.set_postfix_str(f"loss {self.mean_loss():.3f}")
                    state.seconds = time.monotonic() - began
                    self.report()
                    if self.finished():
                        break
                else:
                    state.epoch, state.position = state.epoch + 1, 0
            if self.checkpoint and not bar.disable:
                bar.write(f"kept in {self.checkpoint.parent}", file=sys.stderr)
        if state.best_weights:
            load_weights(self.model, state.best_weights, origin="the best evaluation")

    def finished(self) -> bool:
        history, patience = self.state.history, self.config.patience
        waited = len(history.rows) - 1 - history.best if history.best is not None else 0
        return self.state.step >= self.config.steps or 0 < patience <= waited

    def due(self, every: int) -> bool:
        return self.state.step % every == 0 or self.state.step == self.config.steps

    def learn(self, batches: Sequence[Batch]) -> None:
        """One step: loss, gradients, update."""
        state, config = self.state, self.config
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        state.loss += self.gradients.backward(
            batches,
            sampling=config.scheduled_sampling * state.step / config.steps,
            seed=(config.seed, state.step),
            scale=self.scaler.scale(torch.ones_like(state.loss)),
        )
        self.scaler.unscale_(self.optimizer)
        if config.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip)
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate
        self.scaler.step(self.optimizer)
        self.scaler.update()
        state.counted += 1
        state.step += 1

    @property
    def learning_rate(self) -> float:
        config = self.config
        return config.learning_rate * learning_rate_factor(
            config.schedule, self.state.step, warmup=config.warmup, steps=config.steps
        )

    def mean_loss(self) -> float:
        """Of all processes since the last row; all of them have to ask."""
        mean = float(all_reduce(self.state.loss)) / self.state.counted
        if not math.isfinite(mean):
            raise self.not_a_number(f"the loss is {mean}")
        return mean

    def not_a_number(self, problem: str) -> FloatingPointError:
        kept = self.checkpoint is not None and self.checkpoint.exists()
        return FloatingPointError(
            f"{problem} at step {self.state.step}: try a lower learning rate than "
            f"{self.config.learning_rate}, a longer warm-up, or clipping. "
            + (f"The last good checkpoint is {self.checkpoint}." if kept else "")
        )

    def report(self) -> None:
        """Evaluate and save, when it is time to."""
        state = self.state
        if self.due(self.config.evaluate_every):
            measured = self.evaluate(self.model) if self.evaluate else {}
            metrics = {name: float(value) for name, value in measured.items()}
            state.history.rows.append(
                Row(
                    state.step,
                    state.epoch + 1,
                    self.mean_loss(),
                    self.optimizer.param_groups[0]["lr"],
                    state.seconds,
                    all_gather(metrics)[0],  # so that all decide alike
                )
            )
            state.loss.zero_()
            state.counted = 0
            self.keep_best()
        if self.checkpoint and (
            self.due(self.config.checkpoint_every) or self.finished()
        ):
            self.save(self.checkpoint)

    def keep_best(self) -> None:
        name, history = self.config.monitor, self.state.history
        if not name:
            return
        if name not in history.rows[-1].metrics:
            raise ValueError(
                f"monitor={name!r}, but evaluate returned "
                f"{sorted(history.rows[-1].metrics) or 'nothing'}: name one of those."
            )
        sign = -1 if self.config.higher_is_better else 1
        scores = [sign * row.metrics[name] for row in history.rows]
        best = math.inf if history.best is None else scores[history.best]
        if scores[-1] < best:  # which a NaN never is
            history.best = len(scores) - 1
            self.state.best_weights = {
                n: t.clone() for n, t in weights_of(self.model).items()
            }

    def save(self, path: Path) -> None:
        state = self.state
        if state.counted:
            self.mean_loss()  # raises rather than save what is no longer a number
        weights = weights_of(self.model).values()
        if not all(bool(tensor.isfinite().all()) for tensor in weights):
            raise self.not_a_number("a weight is infinite or not a number")
        # Sums depend on their order: this run goes on with what a resumed one has.
        total = all_reduce(state.loss)
        state.loss = torch.zeros_like(total) if rank() else total
        if rank() == 0:
            state.save(path, self.identity)
