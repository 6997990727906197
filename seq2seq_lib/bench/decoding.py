"""Decoding with a Transformer: ours, other engines with our weights, and peers.

Every contender says exactly 16 symbols for every source: it would be no comparison if
one of them stopped earlier.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from seq2seq_lib.bench.baseline import TorchTransformer, Uncached
from seq2seq_lib.bench.compare import take_turns, threads
from seq2seq_lib.bench.peers.huggingface import HuggingFace
from seq2seq_lib.bench.peers.joeynmt import JoeyNMT
from seq2seq_lib.bench.report import Comparison
from seq2seq_lib.bench.steps import dictionary_batches, with_mkl
from seq2seq_lib.bench.training import bench_config
from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.cmudict import PHONEMES
from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.data.vocabulary import EOS, Vocabulary
from seq2seq_lib.interface import Decoder, EncoderDecoder, EncoderOutput, evaluating
from seq2seq_lib.models.fast import lay_out_for_decoding, onednn_is_faster
from seq2seq_lib.models.saved import SavedModel, source_symbols
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_stacks import TransformerDecoder
from seq2seq_lib.pretrained.export import (
    CTranslate2Model,
    Quantization,
    export_ctranslate2,
    export_onnx,
    load_onnx,
)
from seq2seq_lib.search import beam_search, greedy_search

BASELINE = "nn.Transformer, no cache"
LENGTH = 16
BEAM = 5

Decode = Callable[[Batch, int], list[list[int]]]
"""What is said for every source of a batch, given the width of the beam."""


def endless_model(config: TransformerConfig) -> SavedModel:
    """Our Transformer with random weights, which never says ``EOS``."""
    torch.manual_seed(0)
    model = config.build().eval()
    assert isinstance(model.decoder, TransformerDecoder)
    with torch.no_grad():
        model.decoder.output.bias[EOS] = -1e9
    lay_out_for_decoding(model)  # as load_model does
    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz")
    return SavedModel(
        model, letters, Vocabulary(PHONEMES), "bench", task=TaskName.PRONUNCIATION
    )


def first_rows(batch: Batch, rows: int) -> Batch:
    """The first rows of a batch."""
    return Batch(
        batch.source[:rows],
        batch.source_mask[:rows],
        batch.decoder_input[:rows],
        batch.target[:rows],
        batch.target_mask[:rows],
    )


def searching(decoder: Decoder, encode: Callable[[Batch], EncoderOutput]) -> Decode:
    """Our own search, which drives whatever keeps the contract."""

    def decode(batch: Batch, width: int) -> list[list[int]]:
        with evaluating(decoder):
            encoded = encode(batch)
        if width == 1:
            found = greedy_search(decoder, encoded, max_length=LENGTH)
        else:
            found = beam_search(decoder, encoded, max_length=LENGTH, width=width)
        return [list(f.best.tokens) for f in found]

    return decode


def our_decoding(model: EncoderDecoder) -> Decode:
    """Our model, cache and search."""
    model.eval()
    return searching(model.decoder, model.encode)


def uncached_decoding(model: EncoderDecoder) -> Decode:
    """torch.nn.Transformer with our weights, which reads the whole prefix each time."""
    torch_model = TorchTransformer(model).eval()
    return searching(Uncached(torch_model), torch_model.encode)


def ctranslate2_decoding(
    saved: SavedModel, directory: Path, quantization: Quantization
) -> Decode:
    """CTranslate2 with our weights and its own search, on one thread."""
    export_ctranslate2(saved, directory, quantization=quantization)
    model = CTranslate2Model.load(directory, threads=1)
    letters = source_symbols(saved)

    def decode(batch: Batch, width: int) -> list[list[int]]:
        lengths = (batch.source_mask.sum(dim=1) - 1).tolist()  # it adds EOS itself
        sources = [
            letters.decode(row[:length])
            for row, length in zip(batch.source.tolist(), lengths, strict=True)
        ]
        results = model.translator.translate_batch(
            sources,
            beam_size=width,
            min_decoding_length=LENGTH,
            max_decoding_length=LENGTH,
        )
        return [saved.target_vocabulary.encode(r.hypotheses[0]) for r in results]

    return decode


def onnx_decoding(saved: SavedModel, directory: Path) -> Decode:
    """ONNX Runtime with our weights and our search."""
    export_onnx(saved, directory)
    model = load_onnx(directory, threads=1).model
    return searching(model.decoder, model.encode)


def peer_decoding(peer: HuggingFace | JoeyNMT) -> Decode:
    """A peer of the same sizes with random weights and its own search."""
    peer.eval()
    return lambda batch, width: peer.decode(batch, width=width, length=LENGTH)


def decoders(
    config: TransformerConfig, directory: Path
) -> tuple[dict[str, Decode], dict[str, str]]:
    """Every contender that is installed, and who is missing and why.

    Args:
        config: the sizes of all.
        directory: where models are written for other engines.
    """
    saved = endless_model(config)
    made: dict[str, Callable[[], Decode]] = {
        BASELINE: lambda: uncached_decoding(saved.model),
        "ours": lambda: our_decoding(saved.model),
        "HF Marian generate": lambda: peer_decoding(HuggingFace(config, "Marian")),
        "JoeyNMT": lambda: peer_decoding(JoeyNMT(config)),
        "ONNX Runtime": lambda: onnx_decoding(saved, directory / "onnx"),
        "CTranslate2 float32": lambda: ctranslate2_decoding(
            saved, directory / "float32", Quantization.FLOAT32
        ),
        "CTranslate2 int8": lambda: ctranslate2_decoding(
            saved, directory / "int8", Quantization.INT8
        ),
    }
    if onednn_is_faster():
        made["ours, MKL"] = lambda: with_mkl(our_decoding(saved.model))
    ready, missing = {}, {}
    for name, make in made.items():
        try:
            ready[name] = make()
        except (ImportError, ValueError) as error:
            missing[name] = str(error)
    return ready, missing


def bench_decoding(*, rounds: int) -> list[Comparison]:
    """One thread; greedily and with a beam, one source and many."""
    (batch,) = dictionary_batches(1)
    comparisons = []
    with threads(1), tempfile.TemporaryDirectory() as directory:
        ready, missing = decoders(bench_config(), Path(directory))
        for width in (1, BEAM):
            for rows in (1, 64):
                sources = first_rows(batch, rows)

                def work(
                    decode: Decode, sources: Batch = sources, width: int = width
                ) -> Callable[[], object]:
                    return lambda: decode(sources, width)

                contenders = {name: work(decode) for name, decode in ready.items()}
                seconds = take_turns(contenders, rounds=rounds)
                kind = "greedy" if width == 1 else f"beam {width}"
                name = f"decoding {LENGTH} symbols, {kind}, batch {rows}"
                comparisons.append(Comparison(name, BASELINE, 1, seconds, missing))
    return comparisons
