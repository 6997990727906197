"""Chapter 3: a convolutional encoder, which reads all positions at once.

Axes: B batch, S source, D width.
"""

from jaxtyping import Bool, Int
from torch import Tensor, nn

from seq2seq_lib.interface import Encoder, EncoderOutput
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.recurrent import Pooling, pool


class ConvEncoder(Encoder):
    """Embeds the source and widens each state's receptive field layer by layer.

    Each layer adds a convolution over neighbouring positions: x + relu(conv(x)).

    Args:
        symbols: the size of the source vocabulary.
        width: D, the width of embedding and states.
        layers: how many convolutions.
        kernel: how many neighbouring positions one convolution covers; odd, so that
            a position has as many on its left as on its right.
        pooling: how the states become one vector.
        dropout: the share of features dropped after the embedding and each layer.

    Raises:
        ValueError: the kernel is even.
    """

    def __init__(
        self,
        symbols: int,
        width: int,
        *,
        layers: int = 3,
        kernel: int = 3,
        pooling: Pooling = Pooling.MAXIMUM,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(
                f"kernel={kernel} has no middle: use an odd one, such as {kernel + 1}."
            )
        self.width = width
        self.pooling = pooling
        self.receptive_field = 1 + layers * (kernel - 1)
        self.embedding = nn.Embedding(symbols, width)
        self.dropout = Dropout(dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width, width, kernel, padding="same") for _ in range(layers)
        )

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source."""
        real = mask[:, None]
        x = self.dropout(self.embedding(source)).mT  # B D S
        for convolution in self.convolutions:
            # padding must look like the zeros beyond the edge
            x = x + self.dropout(convolution(x * real).relu())
        states = x.mT  # B S D
        return EncoderOutput(states, mask, pool(states, mask, self.pooling))
