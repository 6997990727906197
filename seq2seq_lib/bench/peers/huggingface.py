"""Hugging Face transformers: Marian and Bart, built from our sizes.

Both are post-norm and share one embedding between source, target and output.
"""

from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.bench.peers.stubs import need
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD
from seq2seq_lib.models.transformer import TransformerConfig

IGNORED = -100  # the label that their loss leaves out
POSITIONS = 64


def marian(config: TransformerConfig) -> nn.Module:
    """Marian, with sinusoidal positions."""
    return HuggingFace(config, "Marian")


def bart(config: TransformerConfig) -> nn.Module:
    """Bart, with learned positions and a normalized embedding."""
    return HuggingFace(config, "Bart")


class HuggingFace(nn.Module):
    """The loss of one of their models, which they compute themselves."""

    def __init__(self, config: TransformerConfig, architecture: str) -> None:
        super().__init__()
        name = architecture.lower()
        sizes = need(f"transformers.models.{name}.configuration_{name}")
        models = need(f"transformers.models.{name}.modeling_{name}")
        kind = {"Marian": "MarianMTModel", "Bart": "BartForConditionalGeneration"}
        self.model: Any = getattr(models, kind[architecture])(
            getattr(sizes, f"{architecture}Config")(
                vocab_size=max(config.source_symbols, config.target_symbols),
                d_model=config.width,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                encoder_attention_heads=config.heads,
                decoder_attention_heads=config.heads,
                encoder_ffn_dim=config.feed_forward,
                decoder_ffn_dim=config.feed_forward,
                dropout=config.dropout,
                attention_dropout=config.dropout,
                activation_dropout=config.dropout,
                activation_function="relu",
                max_position_embeddings=POSITIONS,
                scale_embedding=True,
                pad_token_id=PAD,
                bos_token_id=BOS,
                eos_token_id=EOS,
                decoder_start_token_id=BOS,
                forced_eos_token_id=None,
            )
        )

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss."""
        loss: Tensor = self.model(
            input_ids=batch.source,
            attention_mask=batch.source_mask,
            decoder_input_ids=batch.decoder_input,
            labels=batch.target.masked_fill(~batch.target_mask, IGNORED),
            use_cache=False,
        ).loss
        return loss

    def decode(self, batch: Batch, *, width: int, length: int) -> list[list[int]]:
        """Exactly ``length`` symbols for every source, with their cache."""
        with torch.inference_mode():
            said: Tensor = self.model.generate(
                input_ids=batch.source,
                attention_mask=batch.source_mask.long(),
                num_beams=width,
                do_sample=False,
                min_new_tokens=length,
                max_new_tokens=length,
            )
        return said[:, 1:].tolist()
