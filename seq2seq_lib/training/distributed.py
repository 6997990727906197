"""Chapter 4: several processes, each with its rows of every batch.

``torchrun --nproc-per-node N -m seq2seq_lib train RECIPE`` starts them. All of them
hold the same weights and plan the same batches; what they learn is what one process
would.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, distributed, nn
from torch.distributed.distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous
from torch.nn.parallel import DistributedDataParallel

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.seeds import mixed_seed
from seq2seq_lib.training.objective import Objective
from seq2seq_lib.training.threads import real_symbols, split_rows, whole_batch_module

Item = TypeVar("Item")
Result = TypeVar("Result")


def processes() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def rank() -> int:
    """The number of this process; number 0 writes the files and speaks."""
    return distributed.get_rank() if distributed.is_initialized() else 0


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Join the other processes, if ``torchrun`` started several.

    Args:
        device: the kind to use; each process has a GPU of its own.

    Yields:
        the device of this process.

    Raises:
        ConnectionError: the processes do not find each other.
        ValueError: this kind of device cannot be shared, or there are too few.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield device
        return
    device = _own_device(device)
    try:
        store, number, count = next(rendezvous("env://"))
        # One agent may keep its store over a restart, with the addresses of the dead.
        if os.environ.get("GROUP_WORLD_SIZE") == "1":
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            store = PrefixStore(f"attempt {attempt}", store)
        distributed.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            store=store,
            rank=number,
            world_size=count,
        )
    except (RuntimeError, ValueError) as error:
        raise ConnectionError(
            f"process {os.environ.get('RANK')} of {os.environ['WORLD_SIZE']} cannot "
            f"join the others ({error}): start them all with one torchrun, on every "
            "machine with the same --master-addr and --master-port."
        ) from error
    try:
        yield device
    finally:
        distributed.destroy_process_group()


def _own_device(device: torch.device) -> torch.device:
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise ValueError(
            f"several processes cannot share {device.type}: use cuda or cpu, or start "
            "a single process."
        )
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if local >= torch.accelerator.device_count():
        raise ValueError(
            f"process {local} of this machine finds only "
            f"{torch.accelerator.device_count()} GPUs: give --nproc-per-node at most "
            "that many."
        )
    torch.accelerator.set_device_index(local)
    return torch.device(device.type, local)


def all_reduce(value: Tensor) -> Tensor:
    """The sum of this number over all processes, known to each."""
    total = value.clone()
    if processes() > 1:
        distributed.all_reduce(total)
    return total


def all_gather(value: Item) -> list[Item]:
    """What every process has, in the order of their numbers, known to each."""
    values = [value] * processes()
    if processes() > 1:
        distributed.all_gather_object(values, value)
    return values


def map_over_ranks(
    work: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]
) -> list[Result]:
    """Let every process do a share of some work; all get all results, in order.

    Args:
        work: gives one result for each item.
        items: the same in every process.

    >>> map_over_ranks(lambda words: [word.upper() for word in words], ["a", "b"])
    ['A', 'B']
    """
    own = items[rank() :: processes()]
    shares = all_gather(list(work(own)) if own else [])
    return [shares[n % processes()][n // processes()] for n in range(len(items))]


class SharedGradients:
    """Computes the gradients of all processes' rows, the same in every process.

    Args:
        objective: what to differentiate, with the weights of process 0.

    Raises:
        ValueError: some module needs the whole batch.
    """

    def __init__(self, objective: Objective) -> None:
        if name := whole_batch_module(objective):
            raise ValueError(
                f"{name} needs all rows of a batch at once, but {processes()} "
                "processes share them: train this model in a single one."
            )
        # Looking for unused weights does more than to allow them: it keeps the order
        # in which gradients are sent, which else changes after the first step, and
        # with it the last bits of a run that is resumed. One weight that really is
        # unused keeps PyTorch from warning that there is none.
        device = objective.model.device
        unused = nn.Parameter(torch.zeros(1, device=device))
        objective.register_parameter("unused", unused)
        self.objective = DistributedDataParallel(objective, find_unused_parameters=True)

    def backward(
        self,
        batches: Sequence[Batch],
        *,
        sampling: float,
        seed: Sequence[int],
        scale: Float[Tensor, ""],
    ) -> Float[Tensor, ""]:
        """Like ``ThreadedGradients``, but the loss is of this process's rows only."""
        symbols = real_symbols(batches)
        total = torch.zeros_like(scale)
        for number, batch in enumerate(batches):
            torch.manual_seed(mixed_seed(*seed, number, rank()))
            parts = split_rows(batch, processes())
            # With fewer rows than processes, some take a row that does not count.
            counts = rank() < len(parts)
            last = number == len(batches) - 1
            with nullcontext() if last else self.objective.no_sync():
                value = counts * self.objective(
                    parts[rank() if counts else 0], symbols=symbols, sampling=sampling
                )
                value.backward(scale * processes())  # the average makes it a sum
            total += value.detach()
        return total
