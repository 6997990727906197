"""fairseq, built from our sizes. Its output layer has no bias."""

import copy
from types import SimpleNamespace

from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.bench.peers.stubs import hashable_dataclasses, need, stubs
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import EOS, PAD
from seq2seq_lib.models.transformer import TransformerConfig

UNNEEDED = ("bitarray", "sacremoses", "torchaudio")


class _Symbols:
    """All that its models want to know about a vocabulary."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def pad(self) -> int:
        return PAD

    def eos(self) -> int:
        return EOS


class Fairseq(nn.Module):
    """The loss of its Transformer, with PyTorch's cross entropy as it uses it."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        with stubs(*UNNEEDED), hashable_dataclasses("fairseq", "hydra"):
            theirs = need("fairseq.models.transformer")
        sizes = copy.deepcopy(theirs.TransformerConfig())
        sizes.dropout = config.dropout
        sizes.attention_dropout = sizes.activation_dropout = config.dropout
        sizes.share_decoder_input_output_embed = True
        for side, layers in (
            (sizes.encoder, config.encoder_layers),
            (sizes.decoder, config.decoder_layers),
        ):
            side.embed_dim = config.width
            side.ffn_embed_dim = config.feed_forward
            side.attention_heads = config.heads
            side.layers = layers
            side.normalize_before = True
        sizes.decoder.input_dim = sizes.decoder.output_dim = config.width
        task = SimpleNamespace(
            source_dictionary=_Symbols(config.source_symbols),
            target_dictionary=_Symbols(config.target_symbols),
        )
        self.model = theirs.TransformerModelBase.build_model(sizes, task)

    def forward(self, batch: Batch) -> Tensor:
        """The mean loss."""
        scores, _ = self.model(
            batch.source, batch.source_mask.sum(dim=1), batch.decoder_input
        )
        return F.cross_entropy(
            scores.flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )
