"""Frozen dataclasses filled from plain values, as files and recipes hold them."""

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

ConfigType = TypeVar("ConfigType")


def from_mapping(kind: type[ConfigType], values: Mapping[str, Any]) -> ConfigType:
    """Fill a configuration dataclass from plain values, refusing what does not fit.

    Raises:
        ValueError: a key is unknown or missing, or a value has the wrong type.
    """
    hints = get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind) if f.init}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - set(fields)):
        raise ValueError(
            f"unknown keys {', '.join(unknown)} for {kind.__name__}: "
            f"expected {', '.join(fields)}."
        )
    required = {
        n
        for n, f in fields.items()
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    if missing := sorted(required - set(values)):
        raise ValueError(f"{kind.__name__} needs {', '.join(missing)}.")
    return kind(**{n: _convert(kind, n, hints[n], v) for n, v in values.items()})


def _convert(kind: type, name: str, hint: Any, value: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, Enum):
        choices = [member.value for member in hint]
        if value not in choices:
            raise ValueError(
                f"{kind.__name__}.{name} is {value!r}: expected one of {choices}."
            )
        return hint(value)
    if get_origin(hint) is tuple:  # of any length
        item = get_args(hint)[0]
        if type(value) is not list or not all(type(one) is item for one in value):
            raise ValueError(
                f"{kind.__name__}.{name} is {value!r}: expected a list of values of "
                f"type {item.__name__}."
            )
        return tuple(value)
    if hint is float and type(value) is int:
        return float(value)
    if isinstance(hint, type) and type(value) is not hint:
        raise ValueError(
            f"{kind.__name__}.{name} is {value!r}: expected a value of type "
            f"{hint.__name__}, got {type(value).__name__}."
        )
    return value
