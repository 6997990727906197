"""Chapter 2: the three tests of the contract, for a model of the reader's own."""

import copy
import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.evaluation.changed_batches import keep_rows, small_batch, spread
from seq2seq_lib.evaluation.trial import Trial
from seq2seq_lib.interface import evaluating

ROWS = 8  # as many as are tested


def check_contract(model: Any, batch: Batch | None = None) -> None:
    """Test what chapter 2 asks of every encoder–decoder, and print three lines.

    - The decoder gives step by step what it gives in one full pass, also when rows
      change places between two steps, as they do in a search.
    - Padding changes no output, and a row alone gives what it gives in its batch.
    - Another symbol at a position of the decoder's input changes no earlier output,
      but this one or a later one.

    Dropout is off inside. Of a large batch, eight rows of different lengths are used.

    Args:
        model: has an ``encoder`` and a ``decoder``, as an ``EncoderDecoder`` has.
        batch: sources and targets; ``None`` for a small one of the symbols 4 to 7.

    Raises:
        AssertionError: the model breaks the contract; the message names the mistake,
            and the position and the row of the batch where it shows.

    >>> from seq2seq_lib.models import RNNSeq2SeqConfig
    >>> check_contract(RNNSeq2SeqConfig(source_symbols=8, target_symbols=8).build())
    steps = full pass: yes (differences below 0.0001)
    padding changes nothing: yes (differences below 0.0001)
    the future cannot change the past: yes (differences below 0.0001)
    """
    batch = small_batch() if batch is None else batch
    batch = keep_rows(batch, rows := spread(batch, ROWS)).to(_device(model))
    with _at_rest(model), _precise(model, batch) as (encoder, decoder, batch):
        trial = Trial(encoder, decoder, batch, rows)
        findings = [trial.steps(), trial.padding(), trial.future()]
    for finding in findings:
        print(finding.line())  # noqa: T201, which is its purpose
    # what causes other failures is named first: a decoder that sees the future differs
    # from its steps too, and feels the padding behind the target
    wrong = [finding for finding in findings if finding.message]
    if wrong:
        raise AssertionError(min(wrong, key=lambda finding: finding.rank).message)


def _device(model: Any) -> torch.device:
    """Where the weights are."""
    parts = (model.encoder, model.decoder)
    modules = (part for part in parts if isinstance(part, nn.Module))
    tensors = (tensor for module in modules for tensor in module.parameters())
    return next((tensor.device for tensor in tensors), torch.empty(0).device)


@contextmanager
def _at_rest(model: Any) -> Iterator[None]:
    """Dropout and gradients off, and the state of the random numbers put back."""
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.no_grad())
        for part in (model.encoder, model.decoder):
            if isinstance(part, nn.Module):
                stack.enter_context(evaluating(part))
        yield


@contextmanager
def _precise(model: Any, batch: Batch) -> Iterator[tuple[Any, Any, Batch]]:
    """Copies of encoder and decoder in double precision, where rounding is no question.

    The model itself if it does not run so, such as one that makes float32 tensors.
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.double)
    try:
        try:
            precise = _doubled(model, batch)
        except Exception:  # noqa: BLE001, if it is the model's own, it comes again
            torch.set_default_dtype(before)
            precise = model.encoder, model.decoder, batch
        yield precise
    finally:
        torch.set_default_dtype(before)


def _doubled(model: Any, batch: Batch) -> tuple[Any, Any, Batch]:
    """Copies in double precision that were seen to run."""
    encoder, decoder = parts = copy.deepcopy((model.encoder, model.decoder))
    for part in parts:
        if isinstance(part, nn.Module):
            part.double()
    if batch.source.is_floating_point():  # frames
        batch = dataclasses.replace(batch, source=batch.source.double())
    encoded = encoder(batch.source, batch.source_mask)
    decoder(encoded, batch.decoder_input)
    decoder.step(batch.decoder_input[:, 0], decoder.init_state(encoded))
    return encoder, decoder, batch
