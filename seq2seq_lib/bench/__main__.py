"""``make bench``: time the forms, print ratios, and keep the figures as JSON."""

import dataclasses
import json
import platform

import torch

from seq2seq_lib.bench.compare import compare, table
from seq2seq_lib.bench.forms import (
    attention_forms,
    recurrent_forms,
    transformer_forms,
)
from seq2seq_lib.files import cache_directory, write_whole


def main() -> None:
    """Run every comparison; the first contender is the baseline."""
    results: dict[str, object] = {
        "machine": platform.machine(),
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }
    for name, make in (
        ("self-attention, forward and backward", attention_forms),
        ("GRU, forward and backward", recurrent_forms),
        ("Transformer, loss and gradients", transformer_forms),
    ):
        timings = compare(make())
        print(f"\n{name}\n{table(timings, baseline=next(iter(timings)))}")
        results[name] = {k: dataclasses.asdict(t) for k, t in timings.items()}
    path = cache_directory() / "bench" / "forms.json"
    write_whole(path, json.dumps(results, indent=2) + "\n")
    print(f"\nkept in {path}")


if __name__ == "__main__":
    main()
