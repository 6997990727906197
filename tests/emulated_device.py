"""A second device where there is none: data on the CPU, the rules of a GPU.

Tensors on the device ``emulated`` wrap tensors on the CPU. As on CUDA, a mix with a
tensor on the CPU is refused, unless that has no axes or is an index; a generator of the
CPU is refused; recurrences compute in float16 under autocast, and have no backward pass
in eval mode. What a GPU would have to wait for is written down in ``emulated_waits``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial

import torch
from emulated_waits import note
from torch import Tensor
from torch.utils import backend_registration

NAME = "emulated"
aten = torch.ops.aten


class Rules:
    """What this device can do now, and what its random numbers come from."""

    bfloat16 = True
    random = torch.Generator().manual_seed(0)


# Operations whose result or its size is read from the device.
READS = {
    aten._local_scalar_dense,
    aten.nonzero,
    aten.nonzero_static,
    aten.masked_select,
    aten.equal,
    aten._unique,
    aten._unique2,
    aten.unique_dim,
    aten.unique_consecutive,
    aten.bincount,
}
PACKS = {aten._pack_padded_sequence, aten._pack_padded_sequence_backward}
INDEXES = {aten.index, aten.index_put, aten.index_put_, aten._index_put_impl_}
# Besides pointwise operations, these take a value without axes from the CPU.
TAKES_A_VALUE = {*INDEXES, aten.masked_fill, aten.masked_fill_, aten.index_fill_}


class EmulatedTensor(Tensor):
    """A tensor on the emulated device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> "EmulatedTensor":
        if held.dtype is torch.bfloat16 and not Rules.bfloat16:
            raise RuntimeError(f"BFloat16 is not supported on {NAME}")
        # a view of an ordinary tensor stays one in inference mode
        with torch.inference_mode(held.is_inference()):
            wrapper = torch.Tensor._make_wrapper_subclass(
                cls,
                held.shape,
                strides=held.stride(),
                storage_offset=held.storage_offset(),
                dtype=held.dtype,
                device=f"{NAME}:0",
            )
        wrapper.held = held
        return wrapper

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None):
        return run(operation, *args, **(kwargs or {}))

    def tolist(self):
        return self.cpu().tolist()

    def __repr__(self, **_):
        return f"{self.detach().cpu()!r} on {self.device}"

    def __format__(self, spec):
        return format(self.item() if self.dim() == 0 else repr(self), spec)

    def __reduce_ex__(self, protocol):
        raise NotImplementedError("copy it to the CPU first")

    def __deepcopy__(self, memo):
        copy = self.detach().clone().requires_grad_(self.requires_grad)
        if isinstance(self, torch.nn.Parameter):
            copy = torch.nn.Parameter(copy, self.requires_grad)
        memo[id(self)] = copy
        return copy


def run(operation, *args, **kwargs):
    """Compute on the CPU what this device would compute, by its rules."""
    wrappers, outsiders = {}, []

    def unwrap(value):
        if isinstance(value, EmulatedTensor):
            wrappers[id(value.held)] = value
            return value.held
        if isinstance(value, Tensor):
            outsiders.append(value)
        elif isinstance(value, list | tuple):
            return type(value)([unwrap(one) for one in value])
        return value

    def wrap(value):
        if isinstance(value, list | tuple):
            return type(value)([wrap(one) for one in value])
        if not isinstance(value, Tensor):
            return value
        if (known := wrappers.get(id(value))) is not None:
            assert known.shape == value.shape, f"{operation} changes a shape in place"
            return known
        return EmulatedTensor(value)

    if torch.is_inference_mode_enabled() and is_composite(operation):
        return operation.decompose(*args, **kwargs)  # as outside of inference mode
    kind = operation.overloadpacket
    plain = [unwrap(value) for value in args]
    options = {name: unwrap(value) for name, value in kwargs.items()}
    if kind is aten.copy_:
        return _copy(args, plain)
    if kind is aten._fused_sdp_choice:
        return 0  # the plain kernel, made of products
    if kind in PACKS:
        return _pack(operation, args, plain)
    _refuse_outsiders(operation, args, outsiders)
    if kind in READS or (kind in INDEXES and _by_mask(args)):
        note(kind.__name__)
    target = options.get("device")
    if target is not None:
        if kind is aten._to_copy and target.type == "cpu":
            note("copy")
        options["device"] = torch.device("cpu")
    options.pop("pin_memory", None)
    if options.get("generator") is not None:
        raise RuntimeError(
            f"Expected a '{NAME}' device type for generator but found 'cpu'"
        )
    if torch.Tag.nondeterministic_seeded in operation.tags:
        with own_random_numbers():
            output = operation(*plain, **options)
    else:
        output = operation(*plain, **options)
    return output if target is not None and target.type == "cpu" else wrap(output)


@cache
def is_composite(operation) -> bool:
    """Whether it is made of other operations, on every device."""
    return operation._can_decompose()


def _refuse_outsiders(operation, args, outsiders) -> None:
    kind = operation.overloadpacket
    if kind in INDEXES and isinstance(args[0], EmulatedTensor):
        indices = [index for index in args[1] if index is not None]
        for index in indices:
            if not isinstance(index, EmulatedTensor):
                note("upload")
        outsiders = [o for o in outsiders if not any(o is i for i in indices)]
    values = torch.Tag.pointwise in operation.tags or kind in TAKES_A_VALUE
    for tensor in outsiders:
        written = operation._schema.is_mutable and tensor is args[0]
        if tensor.dim() or written or not values:
            raise RuntimeError(
                f"{operation}: expected all tensors to be on the same device, but "
                f"found at least two devices, {NAME}:0 and {tensor.device}!"
            )


def _by_mask(args) -> bool:
    masks = [i for i in args[1] if i is not None and i.dtype is torch.bool]
    # a mask and one value are filled in without a look at the mask
    one = len(args) > 2 and args[2].dim() == 0 and len(masks) == len(args[1]) == 1
    return any(isinstance(mask, EmulatedTensor) for mask in masks) and not one


def _copy(args, plain):
    target, source, *rest = args
    if not isinstance(target, EmulatedTensor):
        note("copy")
    elif not isinstance(source, EmulatedTensor):
        pinned = getattr(source, "pinned", False)
        if source.numel() and not (pinned and rest and rest[0]):
            note("upload")
    plain[0].copy_(plain[1])
    return target


def _pack(operation, args, plain):
    """Lengths of rows stay on the CPU, where they have to be given."""
    lengths = args[1 if operation.overloadpacket is aten._pack_padded_sequence else 2]
    assert not isinstance(lengths, EmulatedTensor), "lengths belong on the CPU"
    output = operation(*plain)
    if isinstance(output, Tensor):
        return EmulatedTensor(output)
    return EmulatedTensor(output[0]), output[1]


@contextmanager
def own_random_numbers() -> Iterator[None]:
    """Draw what is drawn inside from the generator of this device."""
    before = torch.default_generator.get_state()
    torch.default_generator.set_state(Rules.random.get_state())
    try:
        yield
    finally:
        Rules.random.set_state(torch.default_generator.get_state())
        torch.default_generator.set_state(before)


class _Module:
    """What ``torch.cuda`` is to CUDA."""

    def is_available(self) -> bool:
        return True

    is_initialized = is_available

    def _is_in_bad_fork(self) -> bool:
        return False

    def _lazy_init(self) -> None:
        pass

    def device_count(self) -> int:
        return 1

    def current_device(self) -> int:
        return 0

    def manual_seed_all(self, seed: int) -> None:
        Rules.random.manual_seed(seed)

    def get_rng_state(self, device=None) -> Tensor:
        return Rules.random.get_state()

    def set_rng_state(self, state: Tensor, device=None) -> None:
        Rules.random.set_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.float16, *([torch.bfloat16] if Rules.bfloat16 else [])]


def _register() -> tuple[torch.library.Library, ...]:
    backend_registration._setup_privateuseone_for_python_backend(
        NAME, backend_module=_Module()
    )
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(run, "PrivateUse1")
    named = torch.library.Library("aten", "IMPL")
    # torch.tensor() copies where it lets no fallback be called; the others would make
    # an empty tensor on their way and change its shape
    for name in (
        "copy_",
        "arange",
        "arange.start",
        "arange.start_step",
        "linspace",
        "eye",
        "eye.m",
    ):
        operation, _, overload = name.partition(".")
        kernel = partial(run, getattr(getattr(aten, operation), overload or "default"))
        named.impl(name, kernel, "PrivateUse1")
    return everything, named


_LIBRARIES = _register()  # in force as long as they live
DEVICE = torch.device(NAME)  # as one writes "cuda", without a number
