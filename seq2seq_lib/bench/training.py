"""Training a Transformer: ours, torch.nn.Transformer, and every peer installed."""

from dataclasses import replace

import torch

from seq2seq_lib.bench.baseline import TorchTransformer
from seq2seq_lib.bench.compare import take_turns, threads
from seq2seq_lib.bench.peers import build_installed
from seq2seq_lib.bench.report import Comparison
from seq2seq_lib.bench.steps import (
    Step,
    dictionary_batches,
    our_step,
    turns,
    usual_step,
    with_mkl,
)
from seq2seq_lib.models.fast import onednn_is_faster
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_stacks import DropoutSites

BASELINE = "nn.Transformer"
THREADS = 2


def bench_config(*, dropout: float = 0.0) -> TransformerConfig:
    """The sizes that every contender has."""
    return TransformerConfig(
        source_symbols=30,
        target_symbols=43,
        width=256,
        heads=4,
        encoder_layers=3,
        decoder_layers=3,
        feed_forward=1024,
        dropout=dropout,
        dropout_sites=DropoutSites.TORCH,
    )


def transformer_steps(
    config: TransformerConfig,
) -> tuple[dict[str, Step], dict[str, str]]:
    """A training step of every contender, and who is missing and why.

    Peers drop at the same sites as torch.nn.Transformer: what sublayers add, attention
    weights, and inside the feed-forward network, which d2l cannot. Most drop
    embeddings too. All have the same layers and nearly as many weights.
    """
    torch.manual_seed(0)
    steps = {
        BASELINE: usual_step(TorchTransformer(config.build())),
        f"{BASELINE}, fused AdamW": usual_step(
            TorchTransformer(config.build()), fused=True
        ),
        "ours": our_step(config.build()),
    }
    if onednn_is_faster():
        steps["ours, MKL"] = with_mkl(our_step(config.build()))
    if config.dropout:
        paper = replace(config, dropout_sites=DropoutSites.PAPER)
        steps["ours, paper's sites"] = our_step(paper.build())
    peers, missing = build_installed(config)
    return steps | {name: usual_step(peer) for name, peer in peers.items()}, missing


def bench_training(*, rounds: int) -> list[Comparison]:
    """Two threads, with dropout and without."""
    batches = dictionary_batches(8)
    comparisons = []
    with threads(THREADS):
        for dropout in (0.1, 0.0):
            steps, missing = transformer_steps(bench_config(dropout=dropout))
            contenders = {name: turns(step, batches) for name, step in steps.items()}
            seconds = take_turns(contenders, rounds=rounds)
            name = f"training a Transformer, dropout {dropout}"
            comparisons.append(Comparison(name, BASELINE, THREADS, seconds, missing))
    return comparisons
