"""What a reader has written: whether anything at all, and what it does when called."""

import dis
import inspect
import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from torch import Tensor

IDLE = {"RESUME", "NOP", "POP_TOP", "RETURN_CONST", "LOAD_CONST", "RETURN_VALUE"}


class NotWrittenError(Exception):
    """What was to be written is empty."""


class FailedError(Exception):
    """A call did not come to its end; the message says so in one sentence."""


def is_written(subject: Any) -> bool:
    """Whether a class or a function has a body: not only ``...``, ``pass`` or a text.

    >>> def nothing(): ...
    >>> def something():
    ...     return 1
    >>> is_written(nothing), is_written(something)
    (False, True)
    """
    return any(_does_something(function) for function in _functions(subject))


def _functions(subject: Any) -> Iterator[FunctionType]:
    """The function, or what the class says of itself beyond its construction."""
    if inspect.isfunction(subject):
        yield subject
    elif inspect.isclass(subject):
        own = [
            vars(one).get(name)
            for one in subject.__mro__
            if not one.__module__.startswith("torch.")
            for name in ("forward", "step", "__call__")
        ]
        yield from (one for one in own if inspect.isfunction(one))


def _does_something(function: FunctionType) -> bool:
    work = list(dis.get_instructions(inspect.unwrap(function)))
    return any(one.opname not in IDLE for one in work) or any(
        one.opname in {"RETURN_CONST", "LOAD_CONST"}
        and one.argval not in (None, ..., function.__doc__)
        for one in work
    )


def attempt(call: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call what a reader wrote.

    Args:
        call: how the call is named if it fails, such as ``LayerNorm(8)``.
        function: what is called.
        arguments: with what.

    Raises:
        NotWrittenError: it raises ``NotImplementedError``.
        FailedError: it raises anything else.
    """
    try:
        return function(*arguments)
    except NotImplementedError:
        raise NotWrittenError from None
    except Exception as error:
        line = " ".join(str(error).split()) or "without a message"
        raise FailedError(f"{call} raised {type(error).__name__}: {line}") from error


def positional(subject: Any) -> int:
    """How many arguments a class or a function takes by position.

    >>> positional(lambda x, start=0: x)
    2
    """
    kinds = [one.kind for one in inspect.signature(subject).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return sys.maxsize
    return sum(
        kind in (inspect.Parameter.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)
        for kind in kinds
    )


def kind(value: object) -> str:
    """What a value is, in a few words.

    >>> kind((1, 2)), kind(0.5)
    ('a tuple of 2', 'a float')
    """
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    name = type(value).__name__
    article = "an" if name[0].lower() in "aeiou" else "a"
    return "None" if value is None else f"{article} {name}"
