"""What crosses between grader and student: frames of JSON, never pickle.

A frame is the length of its body, four bytes, big end first, and the body in UTF-8.
Tensors travel as type, shape and base64 of their bytes. Whatever comes out of a box is
bounded in size, depth and shape before anything is built from it.
"""

import base64
import binascii
import json
import math
from collections.abc import Callable
from io import BufferedIOBase
from typing import Any

import torch
from torch import Tensor

LARGEST_FRAME = 1 << 20
MOST_NUMBERS = 1 << 18
DEEPEST = 16
MOST_AXES = 8
MOST_PAIRS = 1000
DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    )
}
PLAIN = (type(None), bool, int, float, str)
# What a student's code may have replaced is looked up before it runs.
_type, _issubclass, _len = type, issubclass, len


class WireError(ValueError):
    """Something that may not cross: too large, too deep, or no data at all."""


def write_frame(stream: BufferedIOBase, message: object) -> None:
    """Send one message, which holds only what JSON knows.

    Raises:
        WireError: it is larger than a frame may be.
    """
    body = json.dumps(message).encode()
    if len(body) > LARGEST_FRAME:
        raise WireError(
            f"{len(body):,} bytes are too many: at most {LARGEST_FRAME:,} may cross."
        )
    stream.write(len(body).to_bytes(4, "big") + body)
    stream.flush()


def read_frame(stream: BufferedIOBase) -> dict[str, Any]:
    """Receive one message.

    Raises:
        EOFError: the other side is gone.
        WireError: what came is no frame, or too large, or no JSON object.
    """
    size = int.from_bytes(_exactly(stream, 4), "big")
    if size > LARGEST_FRAME:
        raise WireError(f"a frame of {size:,} bytes; at most {LARGEST_FRAME:,} count.")
    body = _exactly(stream, size)
    try:
        message = json.loads(body)
    except (ValueError, RecursionError, MemoryError) as error:
        raise WireError(f"a frame that is not JSON: {type(error).__name__}") from None
    if not isinstance(message, dict):
        raise WireError(f"a frame that holds {type(message).__name__}, not an object.")
    return message


def _exactly(stream: BufferedIOBase, count: int) -> bytes:
    found = stream.read(count)
    if len(found) < count:
        raise EOFError(f"{len(found)} of {count} bytes, then the end.")
    return found


def encode(value: Any, *, depth: int = 0) -> Any:
    """A value as JSON, with tensors, tuples and dictionaries marked as such.

    Raises:
        WireError: it holds something that is not data.

    >>> encode((1, [2.5]))
    {'tuple': [1, [2.5]]}
    """
    kind = _type(value)
    if depth > DEEPEST:
        raise WireError(f"nested deeper than {DEEPEST} levels.")
    if kind in PLAIN:
        return value
    if _issubclass(kind, Tensor):
        return _encode_tensor(value)
    if kind is list:
        return [encode(item, depth=depth + 1) for item in value]
    if _issubclass(kind, tuple):
        return {"tuple": [encode(item, depth=depth + 1) for item in value]}
    if kind is dict:
        pairs = [[*pair] for pair in value.items()]
        return {"dict": [encode(pair, depth=depth + 1) for pair in pairs]}
    raise WireError(
        f"an object of type {kind.__name__}: expected tensors, numbers, strings, "
        "None, or lists, tuples and dictionaries of them."
    )


def _encode_tensor(tensor: Tensor) -> dict[str, Any]:
    plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
    name = str(plain.dtype).removeprefix("torch.")
    if name not in DTYPES or plain.layout is not torch.strided:
        raise WireError(
            f"a tensor of type {name}: expected one of {', '.join(DTYPES)}."
        )
    data = plain.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {
        "tensor": name,
        "shape": list(plain.shape),
        "data": base64.b64encode(data).decode(),
    }


def decode(value: Any, *, depth: int = 0) -> Any:
    """What ``encode`` was given, with everything checked that could be a lie.

    Raises:
        WireError: it is not what ``encode`` makes.

    >>> decode(encode({"mask": torch.tensor([True, False])}))
    {'mask': tensor([ True, False])}
    """
    if depth > DEEPEST:
        raise WireError(f"nested deeper than {DEEPEST} levels.")
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list):
        return [decode(item, depth=depth + 1) for item in value]
    match value:
        case {"tuple": list(items), **rest} if not rest:
            return tuple(decode(item, depth=depth + 1) for item in items)
        case {"dict": list(pairs), **rest} if not rest:
            return _decode_dict(pairs, depth=depth + 1)
        case {"tensor": str(name), "shape": list(shape), "data": str(data), **rest}:
            if not rest:
                return _decode_tensor(name, shape, data)
    raise WireError("an object that is no tensor, tuple or dictionary.")


def _decode_dict(pairs: list[Any], *, depth: int) -> dict[Any, Any]:
    if len(pairs) > MOST_PAIRS:  # keys that collide take time with their square
        raise WireError(f"a dictionary of more than {MOST_PAIRS:,} pairs.")
    decoded = [decode(pair, depth=depth) for pair in pairs]
    try:
        return {key: value for key, value in decoded}  # noqa: C416 - checks the pairs
    except (TypeError, ValueError):
        raise WireError("a dictionary whose pairs or keys are none.") from None


def _decode_tensor(name: str, shape: list[Any], data: str) -> Tensor:
    if name not in DTYPES:
        raise WireError("a tensor of a type that does not exist.")
    if len(shape) > MOST_AXES or not all(
        type(size) is int and 0 <= size <= LARGEST_FRAME for size in shape
    ):
        raise WireError("a tensor of an impossible shape.")
    if math.prod(shape) > MOST_NUMBERS:
        raise WireError(f"a tensor of more than {MOST_NUMBERS:,} numbers.")
    try:
        content = bytearray(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise WireError("a tensor whose data is not base64.") from None
    dtype = DTYPES[name]
    if math.prod(shape) * dtype.itemsize != len(content):
        raise WireError(f"a tensor of {len(content)} bytes that do not fit its shape.")
    if not content:
        return torch.empty(shape, dtype=dtype)
    if dtype is torch.bool and max(content) > 1:
        raise WireError("a boolean tensor with other values than 0 and 1.")
    return torch.frombuffer(content, dtype=dtype).reshape(shape)


def by_value(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with arguments and results copied as they would be on the wire."""

    def called(*arguments: Any, **options: Any) -> Any:
        arguments, options = decode(encode((arguments, options)))
        return decode(encode(function(*arguments, **options)))

    return called
