"""Part V: sources that are vectors already, such as frames of sound or patches."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

KIND = "frames"

Source = Sequence[str] | Tensor
"""Symbols, or frames: a tensor S F."""


@dataclass(frozen=True)
class Frames:
    """Stands where a source vocabulary stands, when there is nothing to number.

    Attributes:
        features: F, the size of every vector.

    >>> import torch
    >>> Frames(2).encode(torch.zeros(5, 2)).shape
    torch.Size([5, 2])
    """

    features: int

    @property
    def sizes(self) -> dict[str, int]:
        """What a model's configuration has to know about its sources."""
        return {"source_features": self.features}

    def encode(self, source: Source) -> Tensor:
        """The frames as they are, once they are seen to fit.

        Raises:
            ValueError: these are no frames, or of another size.
        """
        if (
            not isinstance(source, Tensor)
            or source.dim() != 2
            or source.shape[1] != self.features
            or not source.is_floating_point()
        ):
            got = (
                f"{tuple(source.shape)} of {source.dtype}"
                if isinstance(source, Tensor)
                else repr(source)[:60]
            )
            raise ValueError(
                f"a source is {got}: expected a floating-point tensor of shape "
                f"(length, {self.features}), a row of features for every frame."
            )
        return source

    def to_json(self) -> str:
        """The size as JSON text, marked as one of frames."""
        return json.dumps({"kind": KIND, "features": self.features})


def checksum(source: Tensor) -> str:
    """What tells the frames of one source from those of another."""
    return hashlib.sha256(source.contiguous().numpy().tobytes()).hexdigest()
