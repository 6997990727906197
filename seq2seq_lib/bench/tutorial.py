"""The GRU with additive attention as tutorials write it: everything step by step.

It is the architecture of chapter 6, weight for weight.

Axes: B batch, S source, T target, D width, V vocabulary.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.vocabulary import PAD


class Encoder(nn.Module):
    """A GRU in both directions over the packed source."""

    def __init__(self, symbols: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.gru = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, source: Tensor, lengths: Tensor
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "1 B D"]]:
        """The states, and the first state of the decoder."""
        embedded = self.dropout(self.embedding(source))
        packed = pack_padded_sequence(
            embedded, lengths, batch_first=True, enforce_sorted=False
        )
        outputs, last = self.gru(packed)
        states, _ = pad_packed_sequence(outputs, batch_first=True)
        hidden = torch.tanh(self.bridge(torch.cat([last[0], last[1]], dim=1)))
        return states, hidden.unsqueeze(0)


class Attention(nn.Module):
    """Weights of the source positions for one state of the decoder."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width)
        self.energy = nn.Linear(width, 1, bias=False)

    def forward(
        self, hidden: Float[Tensor, "1 B D"], states: Tensor, mask: Tensor
    ) -> Float[Tensor, "B S"]:
        """A softmax over the real positions."""
        query = hidden[-1].unsqueeze(1)
        mixed = torch.tanh(self.query(query) + self.key(states))
        scores = self.energy(mixed).squeeze(2)
        return F.softmax(scores.masked_fill(~mask, float("-inf")), dim=1)


class Decoder(nn.Module):
    """One step: look, read the last symbol, score the next."""

    def __init__(self, symbols: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.attention = Attention(width)
        self.gru = nn.GRU(2 * width, width, batch_first=True)
        self.output = nn.Linear(2 * width, symbols)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, token: Tensor, hidden: Tensor, states: Tensor, mask: Tensor
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "1 B D"]]:
        """Scores of the next symbol, and the next state."""
        embedded = self.dropout(self.embedding(token.unsqueeze(1)))
        weights = self.attention(hidden, states, mask)
        context = torch.bmm(weights.unsqueeze(1), states)
        output, hidden = self.gru(torch.cat([embedded, context], dim=2), hidden)
        features = torch.cat([output, context], dim=2).squeeze(1)
        scores: Tensor = self.output(self.dropout(features))
        return scores, hidden


class Tutorial(nn.Module):
    """The loss, summed step by step.

    Args:
        source_symbols: size of the source vocabulary.
        target_symbols: size of the target vocabulary.
        width: D.
        dropout: the share of features dropped.
    """

    def __init__(
        self, source_symbols: int, target_symbols: int, *, width: int, dropout: float
    ) -> None:
        super().__init__()
        self.encoder = Encoder(source_symbols, width, dropout)
        self.decoder = Decoder(target_symbols, width, dropout)
        self.criterion = nn.CrossEntropyLoss(ignore_index=PAD, reduction="sum")

    def forward(self, batch: Batch) -> Float[Tensor, ""]:
        """The mean loss."""
        lengths = batch.source_mask.sum(dim=1)
        states, hidden = self.encoder(batch.source, lengths)
        loss = torch.zeros(())
        for step in range(batch.target.shape[1]):
            scores, hidden = self.decoder(
                batch.decoder_input[:, step], hidden, states, batch.source_mask
            )
            loss = loss + self.criterion(scores, batch.target[:, step])
        return loss / batch.target_mask.sum()
