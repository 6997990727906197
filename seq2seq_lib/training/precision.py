"""Chapter 4: whether a device computes in a number format."""

import warnings
from collections.abc import Callable

import torch
from torch import nn

from seq2seq_lib.device import imitates_bfloat16


def autocast_trouble(
    module: nn.Module, device: torch.device, dtype: torch.dtype
) -> str:
    """Why this module cannot be trained in this format; empty if it can.

    Asked by trying: some GPUs lack bfloat16, and cuDNN computes recurrences in float16
    whichever format autocast is given, where small gradients become 0.
    """
    if dtype is torch.bfloat16 and imitates_bfloat16(device):
        return "this GPU does not compute in bfloat16"
    x = torch.ones(1, 1, 1, device=device)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # of a format that autocast leaves out
        with torch.autocast(device.type, dtype=dtype):
            try:
                computed = (x @ x).dtype is dtype
            except RuntimeError:
                computed = False
            if not computed:
                return f"{device.type} does not compute in {_name(dtype)}"
            for name, kind in _recurrences(module).items():
                with torch.device("meta"):  # weights drawn would change the run's seed
                    layer = kind(1, 1)
                found = layer.to_empty(device=device)(x)[0].dtype
                if found not in (dtype, torch.float32):
                    return (
                        f"{name} on {device.type} computes in {_name(found)} where "
                        f"{_name(dtype)} is asked for"
                    )
    return ""


def _recurrences(module: nn.Module) -> dict[str, Callable[[int, int], nn.Module]]:
    kinds = {type(part) for part in module.modules() if isinstance(part, nn.RNNBase)}
    return {kind.__name__: kind for kind in kinds}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
