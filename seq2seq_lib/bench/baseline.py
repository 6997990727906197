"""torch.nn.Transformer as one would use it: the baseline of training and decoding.

Axes: B batch, S source, T target, D width, V vocabulary, R rows kept.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.interface import Decoder, DecoderState, EncoderDecoder, EncoderOutput
from seq2seq_lib.models.multi_head import causal_mask
from seq2seq_lib.models.recurrent import Pooling, pool
from seq2seq_lib.models.torch_transformer import to_torch
from seq2seq_lib.models.transformer_stacks import TransformerDecoder, TransformerEncoder


class TorchTransformer(nn.Module):
    """The loss of torch.nn.Transformer between our embeddings and our output layer.

    Args:
        model: whose weights it begins with; it has copies of its own.
    """

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        assert isinstance(model.encoder, TransformerEncoder)
        assert isinstance(model.decoder, TransformerDecoder)
        self.source = model.encoder.embedding
        self.target = model.decoder.embedding
        self.output = model.decoder.output
        self.transformer = to_torch(model)

    def encode(self, batch: Batch) -> EncoderOutput:
        """The memory of a batch's sources."""
        states = self.transformer.encoder(
            self.source(batch.source), src_key_padding_mask=~batch.source_mask
        )
        summary = pool(states, batch.source_mask, Pooling.MEAN)
        return EncoderOutput(states, batch.source_mask, summary)

    def scores(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Unnormalized scores of every next symbol."""
        states = self.transformer.decoder(
            self.target(tokens),
            memory.states,
            tgt_mask=~causal_mask(tokens.shape[1], tokens.device),
            tgt_is_causal=True,
            memory_key_padding_mask=~memory.mask,
        )
        scores: Tensor = self.output(states)
        return scores

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """The mean loss."""
        scores = self.scores(self.encode(batch), batch.decoder_input)
        return F.cross_entropy(
            scores.flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )


@dataclass(frozen=True)
class _Prefix(DecoderState):
    memory: EncoderOutput
    tokens: Int[Tensor, "B T"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "_Prefix":
        return _Prefix(self.memory.reorder(rows), self.tokens[rows])


class Uncached(Decoder):
    """torch.nn.Transformer behind the contract, without a cache.

    Every step reads the whole prefix again.

    Args:
        model: what to decode with.
    """

    def __init__(self, model: TorchTransformer) -> None:
        super().__init__()
        self.model = model

    def init_state(self, memory: EncoderOutput) -> _Prefix:
        """Nothing was said yet."""
        tokens = torch.empty(len(memory), 0, dtype=torch.long)
        return _Prefix(memory, tokens.to(memory.mask.device))

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], _Prefix]:
        """Score the next symbol after the whole prefix."""
        assert isinstance(state, _Prefix)
        tokens = torch.cat([state.tokens, token[:, None]], dim=1)
        scores = self.model.scores(state.memory, tokens)[:, -1]
        return scores.log_softmax(dim=-1), _Prefix(state.memory, tokens)

    def forward(
        self, memory: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All steps at once."""
        return self.model.scores(memory, tokens).log_softmax(dim=-1)
