"""JoeyNMT, built from our sizes. Its output layer has no bias."""

from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.bench.peers.stubs import need, stubs
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD, UNK
from seq2seq_lib.models.transformer import TransformerConfig

UNNEEDED = ("tensorboard", "sentencepiece", "subword_nmt")


class _Symbols:
    """All that its models want to know about a vocabulary."""

    pad_index, bos_index, eos_index, unk_index, sep_index = PAD, BOS, EOS, UNK, None
    specials = lang_tags = ()

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


class JoeyNMT(nn.Module):
    """The loss of its Transformer, which it computes itself."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        with stubs(*UNNEEDED):
            build_model = need("joeynmt.model").build_model
            self.search = need("joeynmt.search")

        def side(layers: int) -> dict[str, Any]:
            return {
                "type": "transformer",
                "num_layers": layers,
                "num_heads": config.heads,
                "hidden_size": config.width,
                "ff_size": config.feed_forward,
                "dropout": config.dropout,
                "layer_norm": "pre",
                "embeddings": {
                    "embedding_dim": config.width,
                    "scale": True,
                    "dropout": config.dropout,
                },
            }

        self.model: Any = build_model(
            {
                "encoder": side(config.encoder_layers),
                "decoder": side(config.decoder_layers),
                "tied_softmax": True,
            },
            _Symbols(config.source_symbols),
            _Symbols(config.target_symbols),
        )
        self.model.loss_function = ("crossentropy", 0.0)

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss."""
        total: Tensor = self.model(
            return_type="loss",
            src=batch.source,
            src_mask=batch.source_mask[:, None],
            src_length=batch.source_mask.sum(dim=1),
            trg_input=batch.decoder_input,
            trg=batch.target,
            trg_mask=batch.target_mask[:, None],
        )[0]
        return total / batch.target_mask.sum()

    def decode(self, batch: Batch, *, width: int, length: int) -> list[list[int]]:
        """Exactly ``length`` symbols for every source; it has no cache."""
        mask = batch.source_mask[:, None]
        with torch.inference_mode():
            states, last, _, _ = self.model(
                return_type="encode",
                src=batch.source,
                src_mask=mask,
                src_length=batch.source_mask.sum(dim=1),
            )
            options = {
                "src_mask": mask,
                "max_output_length": length,
                "min_output_length": length,
                "model": self.model,
                "encoder_output": states,
                "encoder_hidden": last,
            }
            if width == 1:
                said = self.search.greedy(**options)[0]
            else:
                said = self.search.beam_search(beam_size=width, alpha=0.75, **options)[
                    0
                ]
        numbers: list[list[int]] = said.tolist()
        return numbers
