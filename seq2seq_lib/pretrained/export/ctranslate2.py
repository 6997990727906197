"""Transformers for CTranslate2, an inference engine written in C++.

``export_ctranslate2`` writes a directory that any program with CTranslate2 can read;
``CTranslate2Model`` runs it with the search of chapter 5.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.data.vocabulary import SPECIAL, Vocabulary
from seq2seq_lib.files import new_directory
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import LayerNorm, NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.saved import SavedModel, source_symbols
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_blocks import Embedding, FeedForward
from seq2seq_lib.pretrained.export.engine import (
    engine,
    position_table,
    transformer_parts,
)
from seq2seq_lib.search.hypothesis import (
    Hypothesis,
    SearchResult,
    check_search,
    cut_at_end,
)


class Quantization(StrEnum):
    """How weights are stored and multiplied."""

    FLOAT32 = "float32"
    INT8 = "int8"


def export_ctranslate2(
    saved: SavedModel,
    directory: Path | str,
    *,
    quantization: Quantization = Quantization.FLOAT32,
) -> None:
    """Write a Transformer in the format of CTranslate2, whole or not at all.

    Args:
        saved: a Transformer with its vocabularies.
        directory: where to; it must not exist yet, or be empty.
        quantization: ``INT8`` stores a quarter of the bytes and is faster, but rounds.

    Raises:
        ValueError: CTranslate2 is not installed, or does not support this model.
        OSError: the directory cannot be written or holds something already.
    """
    config, encoder, decoder = transformer_parts(saved)
    _check(config)
    spec = _empty(config)
    _set_embedding(spec.encoder, spec.encoder.embeddings[0], encoder.embedding)
    _set_embedding(spec.decoder, spec.decoder.embeddings, decoder.embedding)
    _set_linear(spec.decoder.projection, decoder.output)
    if config.final_norm:
        _set_norm(spec.encoder.layer_norm, encoder.norm)
        _set_norm(spec.decoder.layer_norm, decoder.norm)
    for layer, block in zip(spec.encoder.layer, encoder.blocks, strict=True):
        _set_self_attention(layer.self_attention, block.attention)
        _set_norm(layer.self_attention.layer_norm, block.attention_residual.norm)
        _set_feed_forward(layer.ffn, block.feed_forward)
        _set_norm(layer.ffn.layer_norm, block.feed_forward_residual.norm)
    for layer, last in zip(spec.decoder.layer, decoder.blocks, strict=True):
        _set_self_attention(layer.self_attention, last.attention)
        _set_norm(layer.self_attention.layer_norm, last.attention_residual.norm)
        _set_cross_attention(layer.attention, last.cross)
        _set_norm(layer.attention.layer_norm, last.cross_residual.norm)
        _set_feed_forward(layer.ffn, last.feed_forward)
        _set_norm(layer.ffn.layer_norm, last.feed_forward_residual.norm)

    spec.register_source_vocabulary(list(source_symbols(saved).symbols))
    spec.register_target_vocabulary(list(saved.target_vocabulary.symbols))
    _, bos, eos, unk = SPECIAL
    spec.config.bos_token = spec.config.decoder_start_token = bos
    spec.config.eos_token = eos
    spec.config.unk_token = unk
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = LayerNorm(1).epsilon
    spec.validate()
    spec.optimize(quantization=quantization.value)
    with new_directory(Path(directory)) as temporary:
        spec.save(str(temporary))


def _empty(config: TransformerConfig) -> Any:
    """The model in CTranslate2's terms, without weights."""
    specs = engine("ctranslate2.specs.transformer_spec")
    rotary = config.positions is PositionKind.ROTARY
    choices = {
        "pre_norm": config.order is NormOrder.PRE,
        "no_final_norm": not config.final_norm,
        "rotary_dim": config.width // config.heads if rotary else None,
        "rotary_interleave": True,  # neighbours turn together, as in ours
    }
    return specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.encoder_layers, config.heads, **choices),
        specs.TransformerDecoderSpec(config.decoder_layers, config.heads, **choices),
    )


def _check(config: TransformerConfig) -> None:
    wrong = []
    if config.norm is not NormKind.LAYER:
        wrong.append(f"norm={config.norm} (expected layer)")
    if config.order is NormOrder.POST and config.final_norm:
        wrong.append("final_norm=True after order=post (expected False)")
    if wrong:
        raise ValueError(
            f"CTranslate2 does not support {' and '.join(wrong)}: export this model to "
            "onnx."
        )


def _numbers(tensor: Tensor) -> Any:
    # a copy, because CTranslate2 quantizes in place
    return tensor.detach().float().cpu().numpy().copy()


def _set_linear(spec: Any, *layers: nn.Linear) -> None:
    """Several layers of the same input side by side, as CTranslate2 has them."""
    spec.weight = _numbers(torch.cat([layer.weight for layer in layers]))
    spec.bias = _numbers(torch.cat([layer.bias for layer in layers]))


def _set_norm(spec: Any, layer: nn.Module) -> None:
    assert isinstance(layer, LayerNorm)
    spec.gamma = _numbers(layer.weight)
    spec.beta = _numbers(layer.bias)


def _set_embedding(side: Any, spec: Any, layer: Embedding) -> None:
    spec.weight = _numbers(layer.embedding.weight)
    if hasattr(side, "position_encodings"):  # with rotary positions there are none
        side.position_encodings.encodings = _numbers(position_table(layer))


def _set_self_attention(spec: Any, layer: MultiHeadAttention) -> None:
    _set_linear(spec.linear[0], layer.query, layer.key, layer.value)
    _set_linear(spec.linear[1], layer.output)


def _set_cross_attention(spec: Any, layer: MultiHeadAttention) -> None:
    _set_linear(spec.linear[0], layer.query)
    _set_linear(spec.linear[1], layer.key, layer.value)
    _set_linear(spec.linear[2], layer.output)


def _set_feed_forward(spec: Any, layer: FeedForward) -> None:
    _set_linear(spec.linear_0, layer.first)
    _set_linear(spec.linear_1, layer.second)


@dataclass(frozen=True)
class CTranslate2Model:
    """An exported model, ready to run.

    Attributes:
        translator: a ``ctranslate2.Translator``.
        target_vocabulary: numbers its targets, as in the model it came from.
    """

    translator: Any
    target_vocabulary: Vocabulary

    @staticmethod
    def load(directory: Path | str, *, threads: int = 0) -> "CTranslate2Model":
        """Read what ``export_ctranslate2`` wrote.

        Args:
            directory: where it is.
            threads: how many compute together; 0 leaves it to CTranslate2.

        Raises:
            ValueError: CTranslate2 is not installed, or this is no such directory.
        """
        directory = Path(directory)
        # CTranslate2 writes one file if both vocabularies are the same
        files = [directory / f"{side}_vocabulary.json" for side in ("target", "shared")]
        file = next((file for file in files if file.is_file()), None)
        if file is None or not (directory / "model.bin").is_file():
            raise ValueError(
                f"{directory} holds no model of CTranslate2: expected what "
                "seq2seq export --to ctranslate2 wrote."
            )
        symbols = json.loads(file.read_text("utf-8"))
        translator = engine("ctranslate2").Translator(
            str(directory), intra_threads=threads
        )
        return CTranslate2Model(translator, Vocabulary(symbols[len(SPECIAL) :]))

    def decode(
        self,
        sources: Sequence[Sequence[str]],
        *,
        max_length: int,
        width: int = 5,
        alpha: float = 0.75,
        patience: int = 1,
        rows: int = 256,
    ) -> list[SearchResult]:
        """Search an output for every source, ranked by log p / L^α as everywhere here.

        CTranslate2 stops when ``width`` times ``patience`` hypotheses have ended;
        ``beam_search`` when none could overtake the best one any more. So a larger
        patience comes closer to it, and costs time.

        Args:
            sources: symbols of the source vocabulary, one sequence for each output;
                what it does not know becomes ``UNK``.
            max_length: how many symbols an output may have, ``EOS`` included.
            width: W, how many prefixes are kept; 1 for greedy search.
            alpha: exponent of the length in the score.
            patience: how many times W hypotheses must end.
            rows: how many sources are searched together.

        Returns:
            the hypotheses found for each source, finished ones first, best score
            first; in the order of the sources.

        Raises:
            ValueError: an option is out of range, or a source is empty or too long.
        """
        check_search(max_length=max_length, alpha=alpha, width=width)
        if not all(sources):
            raise ValueError(
                f"{sum(not source for source in sources)} of {len(sources)} sources "
                "are empty: expected at least one symbol in each."
            )
        try:
            results = self.translator.translate_batch(
                [list(source) for source in sources],
                max_batch_size=rows,
                beam_size=width,
                # all: those cut at max_length must not crowd out finished ones
                num_hypotheses=width * patience,
                length_penalty=alpha,
                patience=patience,
                max_input_length=0,  # refuse what is too long rather than cut it
                max_decoding_length=max_length,
                min_decoding_length=0,
                return_end_token=True,  # then the length in the score counts EOS too
                return_scores=True,
            )
        except RuntimeError as error:
            raise ValueError(
                f"CTranslate2 cannot search this ({error}): shorten the sources or "
                f"max_length={max_length}."
            ) from error
        return [SearchResult(self._hypotheses(result, alpha)) for result in results]

    def _hypotheses(self, result: Any, alpha: float) -> list[Hypothesis]:
        found = []
        for symbols, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = self.target_vocabulary.encode(symbols)
            found.append(cut_at_end(tokens, score * len(tokens) ** alpha, alpha))
        return sorted(found, key=lambda h: (not h.finished, -h.score))
