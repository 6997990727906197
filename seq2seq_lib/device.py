"""The one place where a device is chosen."""

import torch


def best_device() -> torch.device:
    """The fastest device of this machine: CUDA, then Apple's MPS, then the CPU."""
    return devices()[0]


def devices() -> list[torch.device]:
    """Every kind of device this machine has, fastest first."""
    found = [torch.device("cpu")]
    if torch.backends.mps.is_available():
        found.insert(0, torch.device("mps"))
    if torch.cuda.is_available():
        found.insert(0, torch.device("cuda"))
    return found
