"""Linear layers whose products are as fast as the processor allows.

On a CPU, PyTorch multiplies float32 matrices with MKL. On processors of other makers
than Intel, MKL leaves instructions of 512 bits unused. oneDNN, which PyTorch brings
along too, uses them, and takes half the time.
"""

import math
import platform
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F
from torch.utils.flop_counter import register_flop_formula

CPU_INFO = Path("/proc/cpuinfo")
FEW_ROWS = 4
"""Products of fewer rows are no faster with oneDNN."""


@cache
def onednn_is_faster() -> bool:
    """Whether this processor can do more than MKL lets it."""
    return (
        torch.backends.cpu.get_cpu_capability() == "AVX512"
        and torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and "GenuineIntel" not in _processor()
    )


def _processor() -> str:
    try:
        return CPU_INFO.read_text(encoding="utf-8")
    except OSError:
        return platform.processor()


class Linear(nn.Linear):
    """y = x Wᵀ + b, as ``torch.nn.Linear``, with whichever product is faster.

    With oneDNN's there are first derivatives only, by ``backward`` or ``grad``.
    """

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Multiply and add."""
        weight, bias = self.weight, self.bias
        if not (
            onednn_is_faster()
            and x.is_cpu
            and x.dtype is weight.dtype is torch.float32
            and x.shape[-1] == self.in_features
            and x.numel() >= FEW_ROWS * self.in_features
            and not torch.is_autocast_enabled(x.device.type)
        ):
            return F.linear(x, weight, bias)
        multiply = _Product.apply if torch.is_grad_enabled() else _product
        if x.dim() == 2:
            flat: Tensor = multiply(x, weight, bias)
            return flat
        y: Tensor = multiply(x.reshape(-1, self.in_features), weight, bias)
        return y.view(*x.shape[:-1], self.out_features)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    multiply: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
    return multiply(x, weight, bias, "none", [], "")


def _operations(
    x: Sequence[int], weight: Sequence[int], *_: object, **__: object
) -> int:
    return 2 * math.prod(x) * weight[0]


if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
    # PyTorch's counter of operations knows its own products only
    register_flop_formula(torch.ops.mkldnn._linear_pointwise)(_operations)  # noqa: SLF001


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        wanted = ctx.needs_input_grad  # type: ignore[attr-defined]
        return (
            _product(gradient, weight.t(), None) if wanted[0] else None,
            _product(gradient.t(), x.t(), None) if wanted[1] else None,
            gradient.sum(dim=0) if wanted[2] else None,
        )
