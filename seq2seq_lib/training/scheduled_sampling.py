"""Chapter 4: training on the model's own words now and then.

Axes: B batch, T target, V vocabulary.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.seeds import thread_generator


def sampled_forward(
    model: EncoderDecoder, batch: Batch, probability: float
) -> Float[Tensor, "B T V"]:
    """Like ``model(batch)``, but some decoder inputs are the model's own choices.

    At every step each row reads, with this probability, its most probable last symbol
    instead of the right one (Bengio et al., 2015). The loss still asks for the right
    continuation. This walks step by step, so it costs what decoding costs.

    Args:
        model: any encoder–decoder.
        batch: what to train on.
        probability: how often the model reads its own choice; 0 is teacher forcing.

    Returns:
        log-probabilities of every next target symbol.
    """
    state = model.decoder.init_state(model.encode(batch))
    token = batch.decoder_input[:, 0]
    steps = []
    random = thread_generator()
    for gold in (*batch.decoder_input[:, 1:].unbind(1), token):  # the last is not read
        log_probabilities, state = model.decoder.step(token, state)
        steps.append(log_probabilities)
        drawn = torch.rand(len(batch), generator=random, device=gold.device)
        own = drawn < probability
        token = torch.where(own, log_probabilities.argmax(dim=-1), gold)
    return torch.stack(steps, dim=1)
