"""The option of commands that compute: on which device."""

import argparse

import torch

from seq2seq_lib.device import best_device


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
