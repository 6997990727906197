"""One step of training, ours and the usual one, and the batches both learn from."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count, cycle
from typing import ParamSpec, TypeVar
from unittest.mock import patch

import torch
from torch import nn

from seq2seq_lib.data.batch import Batch, Batches
from seq2seq_lib.data.cmudict import cmudict
from seq2seq_lib.data.examples import encode_pairs
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models import fast
from seq2seq_lib.training.config import TrainingConfig
from seq2seq_lib.training.objective import Objective
from seq2seq_lib.training.threads import ThreadedGradients

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Step = Callable[[Batch], float]
"""Learns from a batch and gives its loss."""

RATE = 1e-4
BUDGET = 4608  # letters outnumber sounds, so that about 4,096 target symbols fit


def dictionary_batches(number: int, *, budget: int = BUDGET) -> list[Batch]:
    """The first batches of an epoch, in buckets of equal length as in training."""
    corpus = cmudict()
    pairs = encode_pairs(
        corpus.train, corpus.source_vocabulary, corpus.target_vocabulary
    )
    epoch = Batches(pairs, budget=budget).epoch(0)
    return [batch for batch, _ in zip(epoch, range(number), strict=False)]


def our_step(model: EncoderDecoder) -> Step:
    """What ``fit`` does with a batch, with as many threads as PyTorch has now."""
    gradients = ThreadedGradients(Objective(model, TrainingConfig(steps=1)))
    optimizer = torch.optim.AdamW(model.parameters(), RATE, fused=True)
    one = torch.ones(())
    steps = count()

    def step(batch: Batch) -> float:
        model.train()
        optimizer.zero_grad(set_to_none=True)
        loss = gradients.backward(
            [batch], sampling=0.0, seed=(0, next(steps)), scale=one
        )
        optimizer.step()
        return float(loss)

    return step


def usual_step(module: nn.Module, *, fused: bool | None = None) -> Step:
    """What everybody does with a batch.

    Args:
        module: gives the mean loss of a batch.
        fused: AdamW in one kernel; PyTorch's default on a CPU is a loop over weights.
    """
    module.train()
    optimizer = torch.optim.AdamW(module.parameters(), RATE, fused=fused)

    def step(batch: Batch) -> float:
        optimizer.zero_grad()
        loss = module(batch)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def with_mkl(
    work: Callable[Arguments, Result],
) -> Callable[Arguments, Result]:
    """The same with MKL's products, also where ``Linear`` knows a faster one."""

    def slower(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with patch.object(fast, "onednn_is_faster", new=lambda: False):
            return work(*arguments, **options)

    return slower


def turns(step: Step, batches: Sequence[Batch]) -> Callable[[], float]:
    """A turn is one batch; whoever gets his own turns sees the same batches."""
    following: Iterator[Batch] = cycle(batches)
    return lambda: step(next(following))
