"""Chapter 4: on a CPU, every thread goes through the whole model with its own rows.

PyTorch's own threads divide each single operation and wait for each other after it.
Threads that divide the rows of a batch meet only once in a step, when their gradients
are added up.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from threading import Barrier

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.seeds import drawing_from, generator, mixed_seed
from seq2seq_lib.training.objective import Objective

WORTH_A_THREAD = 256  # target symbols; a cautious guess, not yet measured

Loss = Callable[[Batch], Float[Tensor, ""]]


def real_symbols(batches: Sequence[Batch]) -> int:
    """How many target symbols are not padding."""
    return sum(int(batch.target_mask.sum()) for batch in batches)


def split_rows(batch: Batch, parts: int) -> list[Batch]:
    """Cut a batch into neighbouring rows with about as many real target symbols each.

    Every part is as wide as its own longest row.

    Args:
        batch: what to cut; its rows keep their order.
        parts: into how many; fewer come back if there are fewer rows.
    """
    parts = min(parts, len(batch))
    behind = batch.target_mask.sum(dim=1).cumsum(0).tolist()  # symbols up to each row
    cuts = [0]
    for part in range(1, parts):
        wanted = behind[-1] * part / parts
        # at least one row for this part, and one for each that follows
        possible = range(cuts[-1] + 1, len(batch) - parts + part + 1)
        cuts.append(min(possible, key=lambda cut: abs(behind[cut - 1] - wanted)))
    cuts.append(len(batch))
    return [_rows(batch, slice(*ends)) for ends in pairwise(cuts)]


def _rows(batch: Batch, rows: slice) -> Batch:
    source = int(batch.source_mask[rows].sum(dim=1).max())
    target = int(batch.target_mask[rows].sum(dim=1).max())
    return Batch(
        batch.source[rows, :source],
        batch.source_mask[rows, :source],
        batch.decoder_input[rows, :target],
        batch.target[rows, :target],
        batch.target_mask[rows, :target],
    )


def whole_batch_module(model: nn.Module) -> str | None:
    """The name of a module that mixes the rows of a batch, if there is one.

    Batch normalization does; other modules say so by ``needs_whole_batch = True``.
    """
    for module in model.modules():
        if getattr(module, "needs_whole_batch", False) or isinstance(
            module,
            nn.modules.batchnorm._BatchNorm,  # noqa: SLF001
        ):
            return type(module).__name__
    return None


class ThreadedGradients:
    """Computes gradients in one process, side by side where that is faster.

    Rows are divided among threads on a CPU that has several, unless a module needs
    the whole batch, or draws random numbers from PyTorch's generator, which all
    threads share: they would draw in whatever order they came.

    Args:
        objective: what to differentiate.
    """

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.parameters = [p for p in objective.parameters() if p.requires_grad]
        self.count = torch.get_num_threads()
        if objective.model.device.type != "cpu" or whole_batch_module(objective):
            self.count = 1
        self._pool: ThreadPoolExecutor | None = None

    def backward(
        self,
        batches: Sequence[Batch],
        *,
        sampling: float,
        seed: Sequence[int],
        scale: Float[Tensor, ""],
    ) -> Float[Tensor, ""]:
        """Add the gradients of the mean loss to ``grad``, and return that loss.

        Args:
            batches: what to learn from; every real symbol counts alike.
            sampling: how often the decoder reads its own choice.
            seed: of the random numbers.
            scale: factor of the gradients, not of the loss.
        """
        symbols = real_symbols(batches)

        def loss(batch: Batch) -> Tensor:
            value: Tensor = self.objective(batch, symbols=symbols, sampling=sampling)
            return value

        total = torch.zeros_like(scale)
        for number, batch in enumerate(batches):
            torch.manual_seed(mixed_seed(*seed, number))
            if self._worth_splitting(batch, loss):
                total += self._in_threads(loss, batch, (*seed, number), scale)
            else:
                value = loss(batch)
                value.backward(scale)  # type: ignore[no-untyped-call]
                total += value.detach()
        return total

    def _worth_splitting(self, batch: Batch, loss: Loss) -> bool:
        enough = real_symbols([batch]) >= self.count * WORTH_A_THREAD
        if self.count > 1 and enough and self._pool is None:
            if _draws_apart(loss, batch):
                self._pool = _single_threads(self.count)
            else:
                self.count = 1
        return self.count > 1 and enough and len(batch) >= self.count

    def _in_threads(
        self, loss: Loss, batch: Batch, seed: Sequence[int], scale: Tensor
    ) -> Tensor:
        parts = split_rows(batch, self.count)

        def work(number: int) -> tuple[Tensor, tuple[Tensor | None, ...]]:
            with drawing_from(generator(*seed, number)):
                value = loss(parts[number])
            gradients = torch.autograd.grad(
                value, self.parameters, scale, allow_unused=True
            )
            return value.detach(), gradients

        assert self._pool is not None
        futures = [self._pool.submit(work, number) for number in range(len(parts))]
        wait(futures)
        losses, gradients = zip(*(future.result() for future in futures), strict=True)
        # always in the same order, so that a run can be repeated bit for bit
        for parameter, *shares in zip(self.parameters, *gradients, strict=True):
            for share in shares:
                if share is None:
                    continue
                if parameter.grad is None:
                    # a copy in the weight's own layout, which fused optimizers expect
                    parameter.grad = torch.empty_like(parameter).copy_(share)
                else:
                    parameter.grad += share
        return torch.stack(losses).sum()


def _draws_apart(loss: Loss, batch: Batch) -> bool:
    """Whether all random numbers come from the generator in force in this thread."""
    before = torch.get_rng_state()
    with torch.no_grad(), drawing_from(generator(0)):
        loss(batch)
    apart = torch.equal(torch.get_rng_state(), before)
    torch.set_rng_state(before)
    return apart


def _single_threads(count: int) -> ThreadPoolExecutor:
    """Threads inside of which PyTorch uses a single one."""
    started = Barrier(count + 1)

    def start() -> None:
        torch.set_num_threads(1)
        torch.get_num_threads()  # else the first operation would set it once more
        started.wait()

    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(count, "rows", initializer=start)
    for _ in range(count):
        pool.submit(int)
    started.wait()
    # what a thread sets for itself is also what later threads begin with
    torch.set_num_threads(before)
    return pool
