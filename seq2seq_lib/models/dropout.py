"""Chapter 4: dropout whose masks cost little.

Drawing one float for every feature takes a quarter of a Transformer's training step on
a CPU. A mask needs far less: one random number of 64 bits decides over four features,
16 bits for each. Elsewhere PyTorch's own kernel does the same in one pass.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.seeds import thread_generator

LEVELS = 1 << 16
LOWEST = torch.iinfo(torch.int64).min


class Dropout(nn.Dropout):
    """Sets a random share of features to 0 in training and scales up the others.

    The expectation of every feature stays what it was. Random numbers come from the
    generator in force in this thread (``seeds.drawing_from``), else from PyTorch's.

    Args:
        p: the share of features dropped, on a CPU to the nearest 1/65,536.

    Raises:
        ValueError: the share is not from 0 to 1.

    >>> torch.manual_seed(0) and None
    >>> Dropout(0.5)(torch.ones(8)).unique()
    tensor([0., 2.])
    >>> Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
        """Drop features of x."""
        if not self.training or not self.p:
            return x
        if x.device.type != "cpu":
            return F.dropout(x, self.p)
        return x * _mask(x, self.p)

    def add(
        self, x: Float[Tensor, "*B"], output: Float[Tensor, "*B"]
    ) -> Float[Tensor, "*B"]:
        """The same as ``x + self(output)``, in one pass where that is possible."""
        if not self.training or not self.p or x.device.type != "cpu":
            dropped: Tensor = self(output)
            return x + dropped
        return torch.addcmul(x, output, _mask(output, self.p).to(x.dtype))


def _mask(x: Tensor, share: float) -> Tensor:
    """0 where a feature is dropped, elsewhere what keeps its expectation."""
    dropped = round(share * LEVELS)
    count = x.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64)
    # from the lowest number on, without an end: only so are all 64 bits random
    words.random_(LOWEST, None, generator=thread_generator())
    bits = words.view(torch.int16)[:count].view(x.shape)
    mask = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(bits, dropped - LEVELS // 2, out=mask)
    return mask.mul_(LEVELS / max(1, LEVELS - dropped))
