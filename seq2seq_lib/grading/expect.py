"""What checks say: compare an answer with the right one, and with likely mistakes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

TOLERANCE = 1e-4


def expect(
    actual: object,
    right: object,
    *,
    otherwise: str,
    mistakes: Mapping[str, object] | None = None,
) -> None:
    """Assert that an answer is right, or else name the mistake that it shows.

    Args:
        actual: what the student's function returned.
        right: what it should have returned; tensors, numbers, strings, or lists, tuples
            and dictionaries of them.
        otherwise: what to say of an answer that no known mistake explains.
        mistakes: answers that come of known mistakes, each behind what to say of it.

    Raises:
        AssertionError: the answer is not right.

    >>> scores = torch.tensor([2.0, 4.0])
    >>> expect(scores, scores / 2, otherwise="Wrong.", mistakes={"No scale.": scores})
    Traceback (most recent call last):
        ...
    AssertionError: No scale.
    >>> expect(torch.tensor(0.5), 0.5, otherwise="Half is 0.5.")
    Traceback (most recent call last):
        ...
    AssertionError: Expected a number, got Tensor.
    """
    if same(actual, right):
        return
    for message, wrong in (mistakes or {}).items():
        assert not same(actual, wrong), message
    _expect_kind(actual, right)
    raise AssertionError(otherwise)


def _expect_kind(actual: object, right: object) -> None:
    """Name what is wrong with an answer before its numbers are looked at."""
    if isinstance(right, Tensor):
        expect_tensor(actual, right)
    elif isinstance(right, int | float):
        assert isinstance(actual, int | float), (
            f"Expected a number, got {_kind(actual)}."
        )
    elif isinstance(right, list | tuple):
        assert isinstance(actual, list | tuple), (
            f"Expected {_kind(right)}, got {_kind(actual)}."
        )
        if right and all(isinstance(part, Tensor) for part in right):
            assert len(actual) == len(right), (
                f"Expected {_kind(right)}, got {_kind(actual)}."
            )
            for part, wanted in zip(actual, right, strict=True):
                _expect_kind(part, wanted)


def expect_tensor(actual: object, right: Tensor) -> None:
    """Assert that an answer is a tensor with the shape and the kind of another."""
    assert isinstance(actual, Tensor), (
        f"Expected a tensor of shape {tuple(right.shape)}, got {_kind(actual)}."
    )
    assert actual.shape == right.shape, (
        f"Expected a tensor of shape {tuple(right.shape)}, got {tuple(actual.shape)}."
    )
    assert _sort(actual) == _sort(right), (
        f"Expected a tensor of type {right.dtype}, got {actual.dtype}."
    )


def same(left: object, right: object) -> bool:
    """Whether two answers agree, numbers up to rounding.

    A list is as good as a tuple.

    >>> same((1.0, [2]), (1.000001, [2])), same([True], [1]), same((1,), [1])
    (True, False, True)
    """
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return (
            left.shape == right.shape
            and _sort(left) == _sort(right)
            and torch.allclose(
                left.double(),
                right.double(),
                rtol=TOLERANCE,
                atol=TOLERANCE,
                equal_nan=True,
            )
        )
    if isinstance(left, float | int) and isinstance(right, float):
        return not isinstance(left, bool) and same(
            torch.tensor(float(left)), torch.tensor(right)
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same(left[key], right[key]) for key in left
        )
    return type(left) is type(right) and bool(left == right)


def _sort(tensor: Tensor) -> str:
    if tensor.dtype is torch.bool:
        return "boolean"
    return "floating" if tensor.is_floating_point() else "whole"


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return type(value).__name__
