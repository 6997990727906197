"""Chapter 10: our Transformer's weights in torch.nn.Transformer, and back."""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_blocks import FeedForward
from seq2seq_lib.models.transformer_stacks import TransformerDecoder, TransformerEncoder


def to_torch(model: EncoderDecoder) -> nn.Transformer:
    """A torch.nn.Transformer with copies of our weights, in evaluation mode.

    It has neither embeddings nor an output layer: those stay with our model.

    Raises:
        ValueError: the model is no Transformer, or has a choice that
            torch.nn.Transformer does not offer.
    """
    config = _checked(model)
    with warnings.catch_warnings():
        # with pre-norm PyTorch regrets that a fast path of evaluation is not for it
        warnings.filterwarnings("ignore", message="enable_nested_tensor")
        theirs = nn.Transformer(
            config.width,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.feed_forward,
            config.dropout,
            batch_first=True,
            norm_first=config.order is NormOrder.PRE,
        ).to(next(model.parameters()))
    with torch.no_grad():
        for ours, their in _pairs(model, theirs):
            their.copy_(ours)
    return theirs.eval()


def from_torch(theirs: nn.Transformer, model: EncoderDecoder) -> None:
    """Copy the weights of a torch.nn.Transformer of the same sizes into our model.

    Raises:
        ValueError: sizes or choices differ.
    """
    _check_choices(_checked(model), theirs)
    pairs = list(_pairs(model, theirs))
    for ours, their in pairs:
        if ours.shape != their.shape:
            raise ValueError(
                f"a weight of nn.Transformer has shape {tuple(their.shape)}, ours "
                f"{tuple(ours.shape)}: build both with the same sizes."
            )
    with torch.no_grad():
        for ours, their in pairs:
            ours.copy_(their)


def _check_choices(config: TransformerConfig, theirs: nn.Transformer) -> None:
    """Two models with the same weights are the same only if these agree too."""
    layer: Any = theirs.encoder.layers[0]
    ours = {
        "heads": config.heads,
        "pre-norm": config.order is NormOrder.PRE,
        "activation": F.relu,
        "epsilon": 1e-5,
        "bias": True,
    }
    their = {
        "heads": theirs.nhead,
        "pre-norm": layer.norm_first,
        "activation": layer.activation,
        "epsilon": layer.norm1.eps,
        "bias": layer.linear1.bias is not None,
    }
    if wrong := [name for name in ours if ours[name] != their[name]]:
        raise ValueError(
            f"nn.Transformer differs from our model in {', '.join(wrong)}: ours "
            f"{[ours[name] for name in wrong]}, its {[their[name] for name in wrong]}."
        )


def _checked(model: EncoderDecoder) -> TransformerConfig:
    config = model.config
    if not isinstance(config, TransformerConfig):
        raise ValueError(  # noqa: TRY004, a reader's mistake
            f"only a Transformer fits nn.Transformer, not {type(config).__name__}."
        )
    wrong = [
        f"norm={config.norm.value}" if config.norm is not NormKind.LAYER else "",
        "final_norm=False" if not config.final_norm else "",
        "rotary positions" if config.positions is PositionKind.ROTARY else "",
    ]
    if any(wrong):
        raise ValueError(
            f"torch.nn.Transformer does not offer {', '.join(filter(None, wrong))}: it "
            "has layer norm, a final norm, and leaves positions to the embedding."
        )
    return config


def _pairs(
    model: EncoderDecoder, theirs: nn.Transformer
) -> Iterator[tuple[Tensor, Tensor]]:
    """Our weights and theirs, in the same order; slices stay views of one weight."""
    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, TransformerEncoder)
    assert isinstance(decoder, TransformerDecoder)
    if len(encoder.blocks) != len(theirs.encoder.layers) or len(decoder.blocks) != len(
        theirs.decoder.layers
    ):
        raise ValueError(
            f"our model has {len(encoder.blocks)} + {len(decoder.blocks)} layers, "
            f"torch.nn.Transformer {len(theirs.encoder.layers)} + "
            f"{len(theirs.decoder.layers)}: build both with the same."
        )
    for block, layer in zip(encoder.blocks, theirs.encoder.layers, strict=True):
        yield from _attention(block.attention, layer.self_attn)
        yield from _linear(block.attention_residual.norm, layer.norm1)
        yield from _feed_forward(block.feed_forward, layer)
        yield from _linear(block.feed_forward_residual.norm, layer.norm2)
    for last, layer in zip(decoder.blocks, theirs.decoder.layers, strict=True):
        yield from _attention(last.attention, layer.self_attn)
        yield from _linear(last.attention_residual.norm, layer.norm1)
        yield from _attention(last.cross, layer.multihead_attn)
        yield from _linear(last.cross_residual.norm, layer.norm2)
        yield from _feed_forward(last.feed_forward, layer)
        yield from _linear(last.feed_forward_residual.norm, layer.norm3)
    yield from _linear(encoder.norm, theirs.encoder.norm)
    yield from _linear(decoder.norm, theirs.decoder.norm)


def _linear(ours: nn.Module, theirs: nn.Module) -> Iterator[tuple[Tensor, Tensor]]:
    for name in ("weight", "bias"):
        yield getattr(ours, name), getattr(theirs, name)


def _feed_forward(ours: FeedForward, theirs: Any) -> Iterator[tuple[Tensor, Tensor]]:
    yield from _linear(ours.first, theirs.linear1)
    yield from _linear(ours.second, theirs.linear2)


def _attention(
    ours: MultiHeadAttention, theirs: Any
) -> Iterator[tuple[Tensor, Tensor]]:
    projections = (ours.query, ours.key, ours.value)
    weights, biases = theirs.in_proj_weight.chunk(3), theirs.in_proj_bias.chunk(3)
    for layer, weight, bias in zip(projections, weights, biases, strict=True):
        yield layer.weight, weight
        yield layer.bias, bias
    yield from _linear(ours.output, theirs.out_proj)
