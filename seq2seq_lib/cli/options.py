"""Options that several commands share: the device, the number of examples, a folder."""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib.device import best_device
from seq2seq_lib.pretrained.stored_results import write_result


def add_device(command: argparse.ArgumentParser) -> None:
    """Add the option that ``chosen_device`` reads."""
    command.add_argument(
        "--device", help="cuda, mps or cpu (default: the fastest there is)"
    )


def chosen_device(options: argparse.Namespace) -> torch.device:
    """The device that was asked for, or the fastest there is.

    Raises:
        ValueError: this machine does not have it.
    """
    if options.device is None:
        return best_device()
    try:
        device = torch.device(options.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"--device {options.device} cannot be used here ({error}): try "
            f"{best_device().type}."
        ) from error
    return device


def add_store(
    command: argparse.ArgumentParser, what: str, *, required: bool = False
) -> None:
    """Add the option that says where to write; without it nothing is written."""
    command.add_argument(
        "--store",
        type=Path,
        metavar="DIRECTORY",
        required=required,
        help=f"write {what} below this directory, such as seq2seq_lib/pretrained",
    )


def print_and_store(
    result: Mapping[str, Any], options: argparse.Namespace, folder: str
) -> int:
    """Print a result about a model, and write it if that was asked for.

    Args:
        result: with the name of the model.
        options: with what ``add_store`` added.
        folder: below ``results``.
    """
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if options.store:
        path = options.store / "results" / folder / f"{result['model']}.json"
        write_result(path, result)
        print(f"stored in {path}", file=sys.stderr)
    return 0


def check_count(words: int | None) -> None:
    """Refuse ``--words`` below 1."""
    if words is not None and words < 1:
        raise ValueError(f"--words {words}: expected at least 1.")
