"""Training a GRU with additive attention: ours, and the usual loop over steps."""

import torch

from seq2seq_lib.bench.compare import take_turns, threads
from seq2seq_lib.bench.report import Comparison
from seq2seq_lib.bench.steps import (
    Step,
    dictionary_batches,
    our_step,
    turns,
    usual_step,
)
from seq2seq_lib.bench.tutorial import Tutorial
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig

BASELINE = "tutorial loop"


def recurrent_steps(*, width: int = 256, dropout: float = 0.1) -> dict[str, Step]:
    """A training step of every contender; all are the same architecture."""
    torch.manual_seed(0)
    config = RNNAttentionConfig(
        source_symbols=30, target_symbols=43, width=width, dropout=dropout
    )

    def tutorial() -> Tutorial:
        return Tutorial(
            config.source_symbols, config.target_symbols, width=width, dropout=dropout
        )

    return {
        BASELINE: usual_step(tutorial()),
        f"{BASELINE}, fused AdamW": usual_step(tutorial(), fused=True),
        "ours": our_step(config.build()),
    }


def bench_recurrent(*, rounds: int) -> list[Comparison]:
    """One thread, and two."""
    batches = dictionary_batches(8)
    comparisons = []
    for count in (1, 2):
        with threads(count):
            steps = recurrent_steps()
            contenders = {name: turns(step, batches) for name, step in steps.items()}
            seconds = take_turns(contenders, rounds=rounds)
        name = f"training a GRU with attention, {count} thread{'s' * (count > 1)}"
        comparisons.append(Comparison(name, BASELINE, count, seconds))
    return comparisons
