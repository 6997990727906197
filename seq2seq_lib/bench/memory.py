"""The peak of tensors alive, counted, so that every run gives the same number."""

import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def peak_bytes(work: Callable[[], object]) -> int:
    """The most bytes that tensors made by ``work`` held at any one moment.

    Counted are the storages of what operations return, from when they are made to
    when the last tensor that uses them is gone; views share a storage. What a kernel
    takes for itself and gives back before it returns is not seen. Build the model
    inside of ``work`` if its weights should count.

    >>> import torch
    >>> def double_twice():
    ...     once = 2 * torch.zeros(100)  # the zeros are gone when the sum is made
    ...     return once + once
    >>> peak_bytes(double_twice)
    800
    """
    count = _Count()
    with count:
        work()
    return count.peak


class _Count(TorchDispatchMode):
    """Sees every operation, those of the backward pass too."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.alive: dict[int, int] = {}
        self.now = self.peak = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                self._add(tensor)
        return result

    def _add(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = id(storage)  # one Python object for as long as the storage lives
        if key not in self.alive:
            self.alive[key] = storage.nbytes()
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._remove, key)

    def _remove(self, key: int) -> None:
        self.now -= self.alive.pop(key)
