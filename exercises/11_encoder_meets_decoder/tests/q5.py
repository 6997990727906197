"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
points = None

import math

import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def real(lengths, width):
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def looked(q, k, v, mask, heads, *, cut=split, join=merge, **options):
    mask = None if mask is None else mask[:, None, None]
    q, k, v = (cut(x, heads) for x in (q, k, v))
    return join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options))


def causal_pass(x, W_Q, W_K, W_V, **options):
    q, k, v = (x @ W.T for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, **options)


def cache_of(x, W_K, W_V):
    return torch.stack([x @ W_K.T, x @ W_V.T], dim=2).transpose(0, 1)


@case("11_encoder_meets_decoder", "q5")
def check_loss(sequence_loss):  # 3 points
    tokens = torch.tensor([[1, 5, 3, 4, 2], [1, 4, 2, 0, 0]])
    given = numbers(2, 4, 6).log_softmax(dim=-1)
    target, read = tokens[:, 1:], tokens[:, :-1]
    chosen = -given.gather(2, target[..., None])[..., 0]
    repeated = -given.gather(2, read[..., None])[..., 0]
    mask = target != 0
    inside = mask & (target != 2)
    answer = sequence_loss(given, tokens)
    assert not isinstance(answer, torch.Tensor) or answer.numel() == 1, (
        f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
    )
    expect(
        float(answer),
        chosen[mask].mean().item(),
        otherwise="The loss is wrong: the mean of −log p over the real symbols of the "
        "target, which is tokens without BOS.",
        mistakes={
            "The target is not shifted: column t is scored on the token just read, so "
            "the model learns to repeat.": repeated[read != 0].mean().item(),
            "Padding is scored too: the model is paid for saying PAD.": (
                chosen.mean().item()
            ),
            "The sum is right, but it is divided by all positions: divide by the real "
            "ones.": (chosen[mask].sum() / 8).item(),
            "Each row is averaged first: then a symbol of a short answer counts for "
            "more.": ((chosen * mask).sum(1) / mask.sum(1)).mean().item(),
            "The sign is wrong: a loss is the negative log-probability.": (
                -chosen[mask].mean().item()
            ),
            "This is the sum: divide it by the number of real symbols.": (
                chosen[mask].sum().item()
            ),
            "This is the sum divided by the rows: divide by the number of real "
            "symbols.": (chosen[mask].sum() / 2).item(),
            "EOS is not scored: a decoder that never learns to stop will not.": (
                chosen[inside].mean().item()
            ),
        },
    )
