"""The one place where a device is chosen."""

import torch


def best_device() -> torch.device:
    """The fastest device of this machine: CUDA, then Apple's MPS, then the CPU."""
    return devices()[0]


def devices() -> list[torch.device]:
    """Every kind of device this machine has, fastest first."""
    found = [torch.device("cpu")]
    if torch.backends.mps.is_available() and _has_memory("mps"):
        found.insert(0, torch.device("mps"))
    if torch.cuda.is_available():
        found.insert(0, torch.device("cuda"))
    return found


def _has_memory(kind: str) -> bool:
    """Virtual machines may show Apple's GPU and then refuse any memory on it."""
    try:
        torch.zeros(1, device=kind)
    except RuntimeError:
        return False
    return True


def imitates_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is computed in float32 here, as older NVIDIA GPUs do it."""
    return device.type == "cuda" and not torch.cuda.is_bf16_supported(
        including_emulation=False
    )


def fetches_pinned(device: torch.device) -> bool:
    """Whether this device copies pinned memory while the program goes on."""
    return device.type not in ("cpu", "mps", "meta")
