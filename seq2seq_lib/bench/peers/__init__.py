"""Other toolkits that train the same model, each behind the same small adapter.

An adapter is a module whose ``forward`` takes a batch and gives the mean loss; one that
decodes has ``decode`` as well. Packages are imported when an adapter is built.
"""

from collections.abc import Callable, Mapping

from torch import nn

from seq2seq_lib.bench.peers.d2l import D2L
from seq2seq_lib.bench.peers.fairseq import Fairseq
from seq2seq_lib.bench.peers.huggingface import bart, marian
from seq2seq_lib.bench.peers.joeynmt import JoeyNMT
from seq2seq_lib.bench.peers.opennmt import OpenNMT
from seq2seq_lib.models.transformer import TransformerConfig

__all__ = ["PEERS", "build_installed"]

PEERS: Mapping[str, Callable[[TransformerConfig], nn.Module]] = {
    "HF Marian": marian,
    "HF Bart": bart,
    "JoeyNMT": JoeyNMT,
    "OpenNMT-py": OpenNMT,
    "fairseq": Fairseq,
    "d2l": D2L,
}


def build_installed(
    config: TransformerConfig,
) -> tuple[dict[str, nn.Module], dict[str, str]]:
    """Every peer that is installed, and for every other one what is missing."""
    built, missing = {}, {}
    for name, build in PEERS.items():
        try:
            built[name] = build(config)
        except ImportError as error:
            missing[name] = str(error)
    return built, missing
