"""What only makes models faster: the same numbers by other products.

Nothing here is needed to understand a model. Layers take their products from
``Linear``, attention without its weights from ``fused_attention``; a search takes what
all of its steps share from ``FastStep``; ``load_model`` stores weights as
``lay_out_for_decoding`` does.

Axes: B batch, T target, S source, D width, H heads, K width of one head, R rows that
are decoded, F = 3·D width of all three projections (to query, key and value).
"""

import math
import platform
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional as F
from torch.utils.flop_counter import register_flop_formula

CPU_INFO = Path("/proc/cpuinfo")
FEW_ROWS = 4
"""Products of fewer rows are no faster with oneDNN."""
FEW_KEYS = 256
"""Up to so many, plain products are faster than the fused kernel in bfloat16."""


@cache
def onednn_is_faster() -> bool:
    """Whether oneDNN multiplies faster than MKL, which PyTorch uses on a CPU.

    On processors of other makers than Intel, MKL leaves instructions of 512 bits
    unused. oneDNN, which PyTorch brings along too, uses them, and takes half the time.
    """
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
        return multiply(x, self.weight, self.bias)


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The same as ``F.linear``, with whichever product is faster."""
    outputs, inputs = weight.shape
    if not (
        onednn_is_faster()
        and x.is_cpu
        and x.dtype is weight.dtype is torch.float32
        and x.shape[-1] == inputs
        and x.numel() >= FEW_ROWS * inputs
        and not torch.is_autocast_enabled(x.device.type)
    ):
        return F.linear(x, weight, bias)
    product = _Product.apply if torch.is_grad_enabled() else _product
    if x.dim() == 2:
        flat: Tensor = product(x, weight, bias)
        return flat
    y: Tensor = product(x.reshape(-1, inputs), weight, bias)
    return y.view(*x.shape[:-1], outputs)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product: Callable[..., Tensor] = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
    return product(x, weight, bias, "none", [], "")


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


def can_fuse(
    query: Float[Tensor, "*B T K"], key: Float[Tensor, "*B S K"], dropout: float
) -> bool:
    """Whether ``fused_attention`` is possible here and not slower than plain products.

    PyTorch's kernel for CPUs drops no weights. In bfloat16 its backward pass takes many
    times as long as plain products over few keys.
    """
    few = query.dtype is torch.bfloat16 and key.shape[-2] <= FEW_KEYS
    return not (query.is_cpu and (dropout > 0 or few))


def fused_attention(
    query: Float[Tensor, "B H T K"],
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "#B #T S"] | None,
    *,
    causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "B H T K"]:
    """Attention in one kernel, which never stores the weights of all pairs.

    Args:
        query: one slice per head, as key and value.
        key: what queries are compared with.
        value: what is averaged.
        mask: ``True`` where a query may look; ``None`` for everywhere.
        causal: position t may only look at 0 … t; without a mask.
        dropout: the share of weights dropped.
    """
    return F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if mask is None else mask[:, None],
        is_causal=causal,
        dropout_p=dropout,
    )


def lay_out_for_decoding(module: nn.Module) -> None:
    """Store the matrices of linear layers column by column, as products read them.

    Decoding multiplies few rows at a time, and on a CPU the product with a matrix that
    is stored so is up to a quarter faster. Names, shapes and values stay the same, and
    the module can still be trained.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Linear) and layer.weight.device.type == "cpu":
            layer.weight.data = _laid_out(layer.weight.data)


def _laid_out(weight: Tensor) -> Tensor:
    """Stored by columns, unless they are a multiple of 4,096 bytes apart.

    Then they would all meet in the same few lines of the processor's cache.
    """
    if len(weight) * weight.element_size() % 4096 == 0:
        return weight
    return weight.t().contiguous().t()


class FoldedSource(NamedTuple):
    """A single source with the projections of its queries and outputs multiplied in.

    Every head scores the source's positions by (x W + b) kᵀ / √K = x (W kᵀ / √K) + …,
    and its average of the values goes through the output layer: both products with the
    source are the same at every step. For a short source they are smaller than the
    projections.

    Attributes:
        key: W kᵀ / √K of every head, side by side.
        offset: what the bias adds to the scores; −∞ where there is padding.
        value: every head's values after its part of the output layer.
        heads: H.
        output_bias: of the output layer.
    """

    key: Float[Tensor, "D HS"]
    offset: Float[Tensor, " HS"]
    value: Float[Tensor, "HS D"]
    heads: int
    output_bias: Float[Tensor, " D"]

    def attend(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R D"]:
        """The output of cross-attention for the new position of every row."""
        scores = torch.addmm(self.offset, x, self.key)  # R HS
        weights = scores.view(len(x), self.heads, -1).softmax(dim=-1)  # R H S
        return torch.addmm(self.output_bias, weights.flatten(1), self.value)


def fold(
    query: nn.Linear,
    output: nn.Linear,
    key: Float[Tensor, "B H S K"],
    value: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "B S"],
) -> FoldedSource | None:
    """Multiply both projections into a single source, if that makes it smaller.

    Args:
        query: projects the queries of cross-attention.
        output: projects what its heads bring.
        key: of the source.
        value: of the source.
        mask: ``True`` at real source positions.
    """
    rows, heads, length, head_width = key.shape
    if rows > 1 or heads * length > query.in_features:
        return None
    scaled = key[0].mT / math.sqrt(head_width)  # H K S
    weight = query.weight.view(heads, head_width, -1)  # H K D
    bias = query.bias.view(heads, 1, head_width)
    offset = (bias @ scaled).masked_fill(~mask, -torch.inf)  # H 1 S
    outputs = output.weight.T.view(heads, head_width, -1)  # H K D
    return FoldedSource(
        (weight.mT @ scaled).transpose(0, 1).flatten(1),
        offset.flatten(),
        (value[0] @ outputs).flatten(0, 1),
        heads,
        output.bias,
    )


class FastStep(NamedTuple):
    """What one decoder block computes once for all steps of a search.

    Attributes:
        weight: of the queries, keys and values of self-attention, side by side.
        bias: theirs.
        source: what cross-attention needs; ``None`` where that saves nothing.
    """

    weight: Float[Tensor, "F D"]
    bias: Float[Tensor, " F"]
    source: FoldedSource | None

    def project(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R F"]:
        """Query, key and value of every row, by one product."""
        return multiply(x, self.weight, self.bias)


def fast_step(
    projections: Sequence[nn.Linear], source: FoldedSource | None
) -> FastStep:
    """Put the projections of self-attention side by side."""
    bias = torch.cat([layer.bias for layer in projections])
    weights = [layer.weight for layer in projections]
    if weights[0].is_contiguous():
        return FastStep(torch.cat(weights), bias, source)
    columns = torch.cat([weight.t() for weight in weights], dim=1)  # as they are stored
    return FastStep(columns.t(), bias, source)
