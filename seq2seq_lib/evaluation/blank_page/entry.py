"""How an answer from memory is compared with the right one and with likely mistakes."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.weights import (
    copy_weights,
    randomize,
    unmatched,
    ways_to_match,
)
from seq2seq_lib.evaluation.blank_page.written import (
    FailedError,
    NotWrittenError,
    attempt,
    is_written,
    kind,
    positional,
)

TOLERANCE = 1e-4

Outcome = dict[str, Any]
"""What came of each trial, by its name: the results, or ``FailedError``."""

Trial = Callable[[Any], list[Outcome]]
"""Tries a class or a function; several outcomes if its weights can be read in several
ways, any of which may be the right one. Notes on the weights stand under ``""``."""


@dataclass(frozen=True)
class Entry:
    """What is known of one name.

    Attributes:
        right: the library's class or function.
        trial: calls it, or what a reader wrote in its place.
        mistakes: wrong ones, each behind what to say of it.
        parts: names of the results of a call.
    """

    right: Any
    trial: Trial
    mistakes: Mapping[str, Any]
    parts: tuple[str, ...] = ("result",)

    def verdict(self, subject: Any) -> str:
        """What is to be said of what a reader wrote."""
        if not is_written(subject):
            return "not written yet"
        try:
            outcomes = self.trial(subject)
        except NotWrittenError:
            return "not written yet"
        except FailedError as failure:
            return f"not yet. {failure}"
        (right, *_) = self.trial(self.right)
        if any(self._agree(outcome, right) for outcome in outcomes):
            return "right"
        wrong = {
            message: self.trial(subject)[0]
            for message, subject in self.mistakes.items()
        }
        for outcome in outcomes:  # the likeliest order of its weights first
            for message, expected in wrong.items():
                if self._agree(outcome, expected):
                    return f"not yet. {_sentence(message)}"
        return f"not yet. {self._otherwise(outcomes[0], right)}"

    def _agree(self, actual: Outcome, expected: Outcome) -> bool:
        names = [name for name in expected if name and name in actual]
        worked = [name for name in names if not isinstance(expected[name], FailedError)]
        return any(map(_is_known, map(expected.get, worked))) and all(
            isinstance(actual[name], FailedError)
            if name not in worked
            else same(self._results(actual[name]), self._results(expected[name]))
            for name in names
        )

    def _results(self, value: Any) -> Any:
        """The results of a call, cut to those that are asked for."""
        if len(self.parts) == 1 and isinstance(value, tuple) and value:
            return value[0]  # such as a block that returns its weights too
        return value

    def _otherwise(self, actual: Outcome, right: Outcome) -> str:
        """What can be said of an answer that no known mistake explains."""
        fine: list[str] = []
        wrong: list[str] = []
        parts: set[str] = set()
        for name in (name for name in right if name and name in actual):
            if isinstance(actual[name], FailedError):
                return str(actual[name])
            came, wanted = self._results(actual[name]), self._results(right[name])
            if same(came, wanted):
                fine.append(name)
                continue
            wrong.append(name)
            if len(self.parts) == 1:
                came, wanted = (came,), (wanted,)
            elif not isinstance(came, tuple | list) or len(came) != len(wanted):
                expected = f"{kind(wanted)} ({', '.join(self.parts)})"
                return _sentence(f"{name}: expected {expected}, got {kind(came)}.")
            for part, one, other in zip(self.parts, came, wanted, strict=True):
                optional = one is None and part != self.parts[0]
                if optional or same(one, other):
                    continue
                parts.add(part)
                if kind(one) != kind(other) and not isinstance(one, list):
                    expected = kind(other) + (
                        f" as the {part}" if self.parts[1:] else ""
                    )
                    return _sentence(f"{name}: expected {expected}, got {kind(one)}.")
        named = " and the ".join(part for part in self.parts if part in parts)
        differ = "differs" if len(parts) == 1 else "differ"
        message = (
            f"The {named} {differ}, and none of the mistakes known here explains it."
        )
        if fine:
            message += f" Right: {', '.join(fine)}. Wrong: {', '.join(wrong)}."
        if actual.get(""):
            message += f" Its weights are not those expected: {actual['']}."
        return message


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def same(actual: Any, expected: Any) -> bool:
    """Whether results agree, numbers up to rounding.

    Where a number is expected to be NaN, as of a softmax over nothing, anything may
    stand. Where nothing is expected, nothing is compared.

    >>> same((torch.tensor([1.0]), None), (torch.tensor([1.000001]), torch.ones(2)))
    True
    """
    if isinstance(expected, Tensor):
        if not isinstance(actual, Tensor) or actual.shape != expected.shape:
            return False
        left, right = actual.double(), expected.double()
        known = ~right.isnan()
        return torch.allclose(left[known], right[known], rtol=TOLERANCE, atol=TOLERANCE)
    if isinstance(expected, tuple | list):
        return (
            isinstance(actual, tuple | list)
            and len(actual) == len(expected)
            # what may be left out, such as weights that were not asked for
            and all(
                (one is None and place > 0) or other is None or same(one, other)
                for place, (one, other) in enumerate(zip(actual, expected, strict=True))
            )
        )
    if isinstance(expected, float):
        return isinstance(actual, int | float) and math.isclose(
            actual, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE
        )
    return bool(actual == expected)


def _is_known(expected: Any) -> bool:
    """Whether there is anything to compare with."""
    if isinstance(expected, tuple):
        return any(map(_is_known, expected))
    return not isinstance(expected, Tensor) or not bool(expected.isnan().all())


def of_class(
    reference: type[nn.Module],
    sizes: Sequence[Any],
    calls: Mapping[str, Sequence[Any]],
    *,
    layouts: Callable[[Any], Sequence[nn.Module]] = lambda _: (),
    required: int | None = None,
) -> Trial:
    """Build a class, give it known weights, and call it.

    Args:
        reference: the library's class, whose weights are drawn and copied.
        sizes: what the constructor takes, in order.
        calls: what ``forward`` takes, under a name for each call.
        layouts: modules that lay out the same weights in other ways.
        required: how many of the sizes a constructor must take, if not all.
    """
    words = _words(reference.forward)

    def trial(subject: Any) -> list[Outcome]:
        given = list(sizes)
        if required is not None:
            given = given[: max(required, min(len(given), positional(subject)))]
        name = getattr(subject, "__name__", "it")
        call = f"{name}({', '.join(map(str, given))})"
        module = attempt(call, subject, *given)
        if not isinstance(module, nn.Module):
            raise FailedError(
                f"{call} is {kind(module)}: derive the class from nn.Module."
            )
        module.eval()
        known = reference(*sizes)
        randomize(known)
        outcomes = []
        for layout in (known, *layouts(known)):
            notes = unmatched(layout, module)
            if notes and layout is not known:
                continue
            for pairs in ways_to_match(layout, module):
                copy_weights(pairs)
                outcome = _called("forward", module, calls, words[1:])
                outcomes.append({**outcome, "": notes})
        return outcomes

    return trial


def of_function(right: Callable[..., Any], calls: Mapping[str, Sequence[Any]]) -> Trial:
    """Call a function; but for the first, only with as many arguments as it takes."""
    words = _words(right)

    def trial(subject: Any) -> list[Outcome]:
        first, *others = calls
        most = positional(subject)
        kept = [first, *(name for name in others if len(calls[name]) <= most)]
        name = getattr(subject, "__name__", "it")
        return [_called(name, subject, {name: calls[name] for name in kept}, words)]

    return trial


def _called(
    name: str,
    function: Callable[..., Any],
    calls: Mapping[str, Sequence[Any]],
    words: Sequence[str],
) -> Outcome:
    """What comes of every call."""
    outcome: Outcome = {}
    for label, arguments in calls.items():
        given = ", ".join(map(_described, words, arguments))
        copies = [one.clone() if isinstance(one, Tensor) else one for one in arguments]
        try:
            outcome[label] = attempt(f"{name}({given})", function, *copies)
        except FailedError as failure:
            outcome[label] = failure
    return outcome


def _words(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def _described(word: str, argument: Any) -> str:
    """An argument with its shape, such as ``mask: 2 1 4``.

    >>> _described("x", torch.ones(2, 3)), _described("start", 3)
    ('x: 2 3', 'start=3')
    """
    if isinstance(argument, Tensor):
        return f"{word}: {' '.join(map(str, argument.shape))}"
    if isinstance(argument, tuple):
        return word
    return f"{word}={argument!r}"
