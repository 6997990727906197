"""Transformers for ONNX Runtime and whatever else reads ONNX.

``export_onnx`` writes two graphs. ``encoder.onnx`` reads padded sources and gives the
keys and values for every decoder block, side by side. ``decoder_step.onnx``
takes one symbol per row with the key–value caches, and gives log-probabilities with the
caches one position longer. ``load_onnx`` puts both behind the contract of chapter 2,
so that every search drives them.

Axes: B batch, S source, T target so far, D width, H heads, K width of one head, M width
of all keys and values (2·D for each decoder block), V vocabulary, R rows kept.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.files import new_directory, write_whole
from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    EncoderOutput,
)
from seq2seq_lib.models.multi_head import split_heads
from seq2seq_lib.models.saved import SavedModel, read_vocabulary
from seq2seq_lib.pretrained.export.engine import (
    engine,
    position_table,
    transformer_parts,
)
from seq2seq_lib.pretrained.export.onnx_graph import (
    POSITIONS,
    cache_names,
    encoder_graph,
    step_graph,
)

ENCODER, STEP, HEADER = "encoder.onnx", "decoder_step.onnx", "model.json"


def export_onnx(saved: SavedModel, directory: Path | str) -> None:
    """Write a Transformer as two ONNX graphs, whole or not at all.

    Args:
        saved: a Transformer with its vocabularies.
        directory: where to; it must not exist yet, or be empty.

    Raises:
        ValueError: a package is not installed, or the model cannot be exported.
        OSError: the directory cannot be written or holds something already.
    """
    _, encoder, decoder = transformer_parts(saved)
    header = {
        "source_vocabulary": saved.source_vocabulary.to_json(),
        "target_vocabulary": saved.target_vocabulary.to_json(),
        "split": saved.split,
        "task": saved.task.value,
    }
    with new_directory(Path(directory)) as temporary:
        encoder_graph(encoder, decoder).write(
            temporary / ENCODER, positions=len(position_table(encoder.embedding))
        )
        step_graph(decoder).write(
            temporary / STEP, positions=len(position_table(decoder.embedding))
        )
        write_whole(temporary / HEADER, json.dumps(header, ensure_ascii=False))


def load_onnx(directory: Path | str, *, threads: int = 0) -> SavedModel:
    """Read what ``export_onnx`` wrote: a model that ONNX Runtime computes.

    Args:
        directory: where it is.
        threads: how many compute together; 0 leaves it to ONNX Runtime.

    Raises:
        ValueError: ONNX Runtime is not installed, or this is no such directory.
    """
    directory = Path(directory)
    if not (directory / HEADER).is_file():
        raise ValueError(
            f"{directory} holds no model: expected what seq2seq export --to onnx wrote."
        )
    header = json.loads((directory / HEADER).read_text("utf-8"))
    runtime = engine("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    encoder, step = (
        runtime.InferenceSession(directory / name, options) for name in (ENCODER, STEP)
    )
    return SavedModel(
        EncoderDecoder(OnnxEncoder(encoder), OnnxDecoder(step)).eval(),
        read_vocabulary(header["source_vocabulary"]),
        read_vocabulary(header["target_vocabulary"]),
        header["split"],
        task=TaskName(header["task"]),
    )


class OnnxEncoder(Encoder):
    """An encoder whose states are the keys and values of every decoder block.

    Args:
        session: an ``onnxruntime.InferenceSession`` of ``encoder.onnx``.
    """

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        self.width = session.get_outputs()[0].shape[2]

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; the summary is the mean of its states.

        Raises:
            ValueError: the source is longer than what was exported.
        """
        _check_length(self.session, source.shape[1])
        states = torch.from_numpy(self.session.run(None, {"source": source.numpy()})[0])
        return EncoderOutput.averaged(states, mask)


@dataclass(frozen=True)
class OnnxState(DecoderState):
    """The key–value caches of every block, as ``decoder_step.onnx`` takes them.

    Attributes:
        past: keys and values of the target so far, block by block.
        source: keys and values of the source, block by block.
        mask: ``True`` at real source positions.
    """

    past: list[Float[Tensor, "B H T K"]]
    source: list[Float[Tensor, "B H S K"]]
    mask: Bool[Tensor, "B S"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "OnnxState":
        """Keep these batch rows, in this order."""
        return OnnxState(
            [cache[rows] for cache in self.past],
            [cache[rows] for cache in self.source],
            self.mask[rows],
        )


class OnnxDecoder(Decoder):
    """A decoder whose steps ONNX Runtime computes.

    Args:
        session: an ``onnxruntime.InferenceSession`` of ``decoder_step.onnx``.
    """

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        shapes = {i.name: i.shape for i in session.get_inputs()}
        self.blocks = sum(name.startswith("past_") for name in shapes) // 2
        _, self.heads, _, width = shapes["past_key_0"]
        self.encoder_width = 2 * self.blocks * self.heads * width

    def init_state(self, encoded: EncoderOutput) -> OnnxState:
        """Cut the states into keys and values for the heads of every block."""
        caches = _split(encoded.states, self.blocks, self.heads)
        return OnnxState([c[:, :, :0] for c in caches], caches, encoded.mask)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], OnnxState]:
        """One new position, with everything before it in the caches.

        Raises:
            ValueError: the target is longer than what was exported.
        """
        assert isinstance(state, OnnxState)
        _check_length(self.session, state.past[0].shape[2] + 1)
        sources = cache_names("source", self.blocks)
        past = cache_names("past", self.blocks)
        inputs = {
            "token": token,
            "mask": state.mask,
            **dict(zip(sources, state.source, strict=True)),
            **dict(zip(past, state.past, strict=True)),
        }
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        scores, *caches = map(torch.from_numpy, self.session.run(None, arrays))
        return scores, OnnxState(caches, state.source, state.mask)

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Step by step, since the graph knows nothing else."""
        state, columns = self.init_state(encoded), []
        for token in tokens.unbind(1):
            log_probabilities, state = self.step(token, state)
            columns.append(log_probabilities)
        return torch.stack(columns, dim=1)


def _check_length(session: Any, length: int) -> None:
    positions = int(session.get_modelmeta().custom_metadata_map[POSITIONS])
    if length > positions:
        raise ValueError(
            f"a sequence of {length} symbols, but only {positions} positions were "
            "exported: shorten it."
        )


def _split(states: Tensor, blocks: int, heads: int) -> list[Tensor]:
    """Keys and values of every block, B H S K each, from B S M."""
    parts = states.chunk(2 * blocks, dim=-1)
    return [split_heads(part, heads).contiguous() for part in parts]
