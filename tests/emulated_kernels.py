"""What the emulated device does in ways of its own: recurrences, pinned memory."""

import torch
from emulated_device import NAME, EmulatedTensor, own_random_numbers
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

RECURRENCES = ("gru", "lstm", "rnn_tanh", "rnn_relu")


class Recurrence(torch.autograd.Function):
    """A whole recurrence as one operation, as cuDNN has it."""

    @staticmethod
    def forward(ctx, compute, training, *tensors):
        held = [tensor.held.detach() for tensor in tensors]
        for one, tensor in zip(held, tensors, strict=True):
            one.requires_grad_(tensor.requires_grad)
        with torch.enable_grad():
            outputs = compute(held)
        ctx.inside, ctx.training = (held, outputs), training
        return tuple(EmulatedTensor(output.detach()) for output in outputs)

    @staticmethod
    def backward(ctx, *gradients):
        if not ctx.training:
            raise RuntimeError("cudnn RNN backward can only be called in training mode")
        held, outputs = ctx.inside
        wanted = [tensor for tensor in held if tensor.requires_grad]
        found = torch.autograd.grad(
            outputs, wanted, [g.held for g in gradients], allow_unused=True
        )
        found = iter(found)
        each = [next(found) if one.requires_grad else None for one in held]
        each = [None if one is None else EmulatedTensor(one) for one in each]
        return None, None, *each


def recurrence(kind):
    """PyTorch's function of that name, on either device."""
    original = getattr(torch._VF.vf, kind)

    def run(*args):
        packed = isinstance(args[3], list | tuple)
        lengths, places = (args[1], (0, *args[2:])) if packed else (None, args)
        leaves, shape = tree_flatten((args[0], *places[1:]))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        there = [isinstance(tensor, EmulatedTensor) for tensor in tensors]
        if not any(there):
            return original(*args)
        if not all(there):
            raise RuntimeError("Input and parameter tensors are not at the same device")
        if packed and isinstance(lengths, EmulatedTensor):
            raise RuntimeError("lengths of packed rows have to be on the CPU")

        def compute(held):
            found = iter(held)
            filled = [next(found) if isinstance(o, Tensor) else o for o in leaves]
            x, *rest = tree_unflatten(filled, shape)
            with own_random_numbers():
                return original(x, *([lengths] if packed else []), *rest)

        half = torch.is_autocast_enabled(NAME)
        if half:  # cuDNN's cast, whichever type was asked for
            tensors = [tensor.half().float() for tensor in tensors]
        training = args[-2] if packed else args[-3]
        if torch.is_grad_enabled():
            outputs = Recurrence.apply(compute, training, *tensors)
        else:
            held = [tensor.held for tensor in tensors]
            outputs = tuple(EmulatedTensor(output) for output in compute(held))
        return tuple(output.half() for output in outputs) if half else outputs

    return run


LOWER = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm", "conv1d")
LOWER = (*LOWER, "scaled_dot_product_attention")
FULL = ("softmax.int", "log_softmax.int", "layer_norm", "exp", "log", "pow.Scalar")
KEY = torch._C.DispatchKey.AutocastPrivateUse1


def register_autocast() -> tuple[torch.library.Library, ...]:
    """Products in the lower precision, what needs many bits in float32, as on CUDA."""
    library = torch.library.Library("aten", "IMPL")
    others = torch.library.Library("_", "IMPL")
    others.fallback(torch.library.fallthrough_kernel, KEY.name)

    def register(name, wanted):
        operation, _, overload = name.partition(".")
        call = getattr(getattr(torch.ops.aten, operation), overload or "default")

        def cast(value):
            if isinstance(value, Tensor) and value.dtype in (
                torch.float32,
                torch.float16,
                torch.bfloat16,
            ):
                return value.to(wanted())
            return value

        def kernel(*args, **kwargs):
            with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(KEY)):
                plain = [cast(value) for value in args]
                return call(*plain, **{n: cast(v) for n, v in kwargs.items()})

        library.impl(name, kernel, KEY.name)

    for name in LOWER:
        register(name, lambda: torch.get_autocast_dtype(NAME))
    for name in FULL:
        register(name, lambda: torch.float32)
    return library, others


_AUTOCAST = register_autocast()  # in force as long as they live


def pin_memory(tensor: Tensor) -> Tensor:
    """A copy that the device can fetch while the program goes on."""
    copy = tensor.clone()
    copy.pinned = True
    return copy


def install(monkeypatch) -> None:
    """Let PyTorch call what stands here."""
    for kind in RECURRENCES:
        monkeypatch.setattr(torch._VF, kind, recurrence(kind), raising=False)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin_memory)
    # weights move as on a GPU: the parameter stays the same object
    monkeypatch.setattr(torch.__future__, "_swap_module_params_on_conversion", True)
