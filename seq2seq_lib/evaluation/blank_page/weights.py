"""The same weights for two modules, whatever the names of their layers."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import permutations, product

import torch
from torch import Tensor, nn

from seq2seq_lib.seeds import generator

Pair = tuple[Tensor, Tensor]
Pairs = list[Pair]
"""Weights of a module, each with the one that it should equal."""

MOST_WAYS = 48


def randomize(module: nn.Module, seed: int = 0) -> None:
    """Draw all weights anew; none stays at one or zero, where it would not be felt."""
    random = generator(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(
                torch.empty_like(parameter).uniform_(-1, 1, generator=random)
            )


def ways_to_match(reference: nn.Module, module: nn.Module) -> Iterator[Pairs]:
    """Which weights of a module could be which of another.

    By name, if the names agree. Else layers are matched with layers that have weights
    of the same names and shapes, first in the order in which they are defined, then in
    every other order, unless there are too many; what is left over, weight by weight
    in order of definition.
    """
    right, own = dict(reference.named_parameters()), dict(module.named_parameters())
    if all(name in right and right[name].shape == own[name].shape for name in own):
        yield [(own[name], right[name]) for name in own]
        return
    layers, known = _layers(module), _layers(reference)
    both = [one for one in layers if one in known]
    sizes = [(len(known[one]), len(layers[one])) for one in both]
    count = math.prod(math.perm(n, min(n, k)) for n, k in sizes)
    orders = product(
        *(
            permutations(known[one], min(n, k))
            for one, (n, k) in zip(both, sizes, strict=True)
        )
    )
    for number, order in enumerate(orders):
        pairs = [
            pair
            for one, theirs in zip(both, order, strict=True)
            for mine, other in zip(layers[one], theirs, strict=False)
            for pair in zip(mine, other, strict=True)
        ]
        yield [*pairs, *_rest(reference, module, pairs)]
        if count > MOST_WAYS and not number:
            return


def copy_weights(pairs: Pairs) -> None:
    """Make weights equal."""
    with torch.no_grad():
        for mine, theirs in pairs:
            mine.copy_(theirs)


def unmatched(reference: nn.Module, module: nn.Module) -> str:
    """Which weights a module has too many or too few, in words.

    >>> unmatched(nn.Linear(3, 2), nn.Linear(3, 2, bias=False))
    '1 too few of shape (2,)'
    """
    own, right = (
        Counter(tuple(weight.shape) for weight in one.parameters())
        for one in (module, reference)
    )
    more = [f"{n} too many of shape {shape}" for shape, n in (own - right).items()]
    fewer = [f"{n} too few of shape {shape}" for shape, n in (right - own).items()]
    return ", ".join([*more, *fewer])


def _layers(module: nn.Module) -> dict[object, list[list[Tensor]]]:
    """The layers inside a module, by the names and shapes of their weights."""
    found: dict[object, list[list[Tensor]]] = defaultdict(list)
    for part in module.modules():
        own = dict(part.named_parameters(recurse=False))
        if own and part is not module:
            signature = tuple((name, one.shape) for name, one in own.items())
            found[signature].append(list(own.values()))
    return found


def _rest(reference: nn.Module, module: nn.Module, pairs: Pairs) -> Iterator[Pair]:
    """Pairs of what no layer took along."""
    taken = {id(weight) for pair in pairs for weight in pair}
    left = defaultdict(list)
    for weight in reference.parameters():
        if id(weight) not in taken:
            left[weight.shape].append(weight)
    for weight in module.parameters():
        if id(weight) not in taken and left[weight.shape]:
            yield weight, left[weight.shape].pop(0)
