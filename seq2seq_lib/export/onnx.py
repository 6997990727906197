"""Transformers for ONNX Runtime and whatever else reads ONNX.

``export_onnx`` writes two graphs. ``encoder.onnx`` reads padded sources and gives the
keys and values that every decoder block looks at, side by side. ``decoder_step.onnx``
takes one symbol per row with the key–value caches, and gives log-probabilities with the
caches one position longer. ``load_onnx`` puts both behind the contract of chapter 2,
so that every search drives them.

Axes: B batch, S source, T target so far, D width, H heads, K width of one head, M width
of the memory (2·D for each decoder block), V vocabulary, R rows kept.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.data.subwords import read_vocabulary
from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.export.engine import (
    engine,
    position_table,
    transformer_parts,
    turning,
)
from seq2seq_lib.files import new_directory, write_whole
from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    Memory,
)
from seq2seq_lib.multi_head import MultiHead, SelfAttention, split_heads
from seq2seq_lib.normalization import MaskedBatchNorm, Normalization, NormOrder
from seq2seq_lib.positional import Rotary
from seq2seq_lib.recurrent import Summary, summarize
from seq2seq_lib.training.checkpoint import SavedModel
from seq2seq_lib.transformer import TransformerDecoder, TransformerEncoder
from seq2seq_lib.transformer_blocks import Embedding, FeedForward, Residual

ENCODER, STEP, HEADER = "encoder.onnx", "decoder_step.onnx", "model.json"
POSITIONS = "positions"


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
    }
    with new_directory(Path(directory)) as temporary:
        _encoder_graph(encoder, decoder).write(
            temporary / ENCODER, positions=len(position_table(encoder.embedding))
        )
        _step_graph(decoder).write(
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
    )


class OnnxEncoder(Encoder):
    """An encoder whose memory holds the keys and values of every decoder block.

    Args:
        session: an ``onnxruntime.InferenceSession`` of ``encoder.onnx``.
    """

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session
        self.width = session.get_outputs()[0].shape[2]

    def forward(self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]) -> Memory:
        """Encode the source; the summary is the mean of its states.

        Raises:
            ValueError: the source is longer than what was exported.
        """
        _check_length(self.session, source.shape[1])
        states = torch.from_numpy(self.session.run(None, {"source": source.numpy()})[0])
        return Memory(states, mask, summarize(states, mask, Summary.MEAN))


@dataclass(frozen=True)
class OnnxState(DecoderState):
    """The key–value caches of every block, as ``decoder_step.onnx`` takes them.

    Attributes:
        past: keys and values of the target so far, block by block.
        memory: keys and values of the source, block by block.
        mask: ``True`` at real source positions.
    """

    past: list[Float[Tensor, "B H T K"]]
    memory: list[Float[Tensor, "B H S K"]]
    mask: Bool[Tensor, "B S"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "OnnxState":
        """Keep these batch rows, in this order."""
        return OnnxState(
            [cache[rows] for cache in self.past],
            [cache[rows] for cache in self.memory],
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
        self.memory_width = 2 * self.blocks * self.heads * width

    def init_state(self, memory: Memory) -> OnnxState:
        """Cut the memory into what the heads of every block look at."""
        caches = _split(memory.states, self.blocks, self.heads)
        return OnnxState([c[:, :, :0] for c in caches], caches, memory.mask)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], OnnxState]:
        """One new position, with everything before it in the caches.

        Raises:
            ValueError: the target is longer than what was exported.
        """
        assert isinstance(state, OnnxState)
        _check_length(self.session, state.past[0].shape[2] + 1)
        source, past = _names("source", self.blocks), _names("past", self.blocks)
        inputs = {
            "token": token,
            "mask": state.mask,
            **dict(zip(source, state.memory, strict=True)),
            **dict(zip(past, state.past, strict=True)),
        }
        arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
        scores, *caches = map(torch.from_numpy, self.session.run(None, arrays))
        return scores, OnnxState(caches, state.memory, state.mask)

    def forward(
        self, memory: Memory, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Step by step, since the graph knows nothing else."""
        state, scores = self.init_state(memory), []
        for token in tokens.unbind(1):
            said, state = self.step(token, state)
            scores.append(said)
        return torch.stack(scores, dim=1)


def _check_length(session: Any, length: int) -> None:
    positions = int(session.get_modelmeta().custom_metadata_map[POSITIONS])
    if length > positions:
        raise ValueError(
            f"a sequence of {length} symbols, but only {positions} positions were "
            "exported: shorten it."
        )


def _names(axis: str, blocks: int) -> list[str]:
    """The keys and values of every block, as inputs and outputs are called."""
    return [
        f"{axis}_{kind}_{block}" for block in range(blocks) for kind in ("key", "value")
    ]


def _split(memory: Tensor, blocks: int, heads: int) -> list[Tensor]:
    """Keys and values of every block, B H S K each, from B S M."""
    parts = memory.chunk(2 * blocks, dim=-1)
    return [split_heads(part, heads).contiguous() for part in parts]


class _Graph:
    """Operators of ONNX in the order of their use; every value has a name."""

    def __init__(self) -> None:
        self.onnx = engine("onnx")
        self.inputs: list[Any] = []
        self.nodes: list[Any] = []
        self.outputs: list[Any] = []
        self.weights: dict[int, tuple[str, Tensor]] = {}

    def __call__(self, operator: str, *inputs: str | Tensor, **options: Any) -> str:
        """Apply an operator to named values and weights, and name its result."""
        return self._add(operator, f"value_{len(self.nodes)}", *inputs, **options)

    def input(self, name: str, kind: torch.dtype, *shape: int | str) -> str:
        """Something that the graph takes; axes with names may have any length."""
        self.inputs.append(self._describe(name, kind, shape))
        return name

    def output(self, name: str, value: str, *shape: int | str) -> None:
        """Something that the graph gives."""
        self._add("Identity", name, value)
        self.outputs.append(self._describe(name, torch.float, shape))

    def write(self, path: Path, *, positions: int) -> None:
        """Check the graph and write it, with how many positions it knows."""
        helper, numbers = self.onnx.helper, self.onnx.numpy_helper
        weights = [
            numbers.from_array(_array(tensor), name)
            for name, tensor in self.weights.values()
        ]
        graph = helper.make_graph(
            self.nodes, path.stem, self.inputs, self.outputs, weights
        )
        opset = helper.make_opsetid("", 17)  # the first with LayerNormalization
        model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
        helper.set_model_props(model, {POSITIONS: str(positions)})
        self.onnx.checker.check_model(model)
        self.onnx.save(model, path)

    def _add(
        self, operator: str, result: str, *inputs: str | Tensor, **options: Any
    ) -> str:
        names = [i if isinstance(i, str) else self._weight(i) for i in inputs]
        node = self.onnx.helper.make_node(operator, names, [result], **options)
        self.nodes.append(node)
        return result

    def _weight(self, tensor: Tensor) -> str:
        # by identity, so that tied weights are stored once
        name = f"weight_{len(self.weights)}"
        return self.weights.setdefault(id(tensor), (name, tensor))[0]

    def _describe(
        self, name: str, kind: torch.dtype, shape: Sequence[int | str]
    ) -> Any:
        types = self.onnx.TensorProto
        number = {
            torch.long: types.INT64,
            torch.bool: types.BOOL,
            torch.float: types.FLOAT,
        }[kind]
        return self.onnx.helper.make_tensor_value_info(name, number, shape)


def _array(tensor: Tensor) -> Any:
    tensor = tensor.detach().cpu()
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _encoder_graph(encoder: TransformerEncoder, decoder: TransformerDecoder) -> _Graph:
    graph = _Graph()
    source = graph.input("source", torch.long, "batch", "source")
    padding = graph("Equal", source, torch.tensor(PAD))
    mask = graph("Unsqueeze", graph("Not", padding), torch.tensor([1, 2]))  # B 1 1 S
    length = graph("Shape", source, start=1)
    first, axis = torch.tensor([0]), torch.tensor([0])

    def here(table: Tensor) -> str:
        return graph("Slice", table, first, length, axis)

    positions = here(position_table(encoder.embedding))
    x = _embed(graph, encoder.embedding, source, positions)  # B S D
    for block in encoder.blocks:
        heard = _before(graph, block.attention_residual, x)
        query, key, value = _project(graph, block.attention, heard, here)
        said = _look(graph, block.attention, query, (key, value), mask)
        x = _after(graph, block.attention_residual, x, said)
        x = _think(graph, block.feed_forward, block.feed_forward_residual, x)
    x = _norm(graph, encoder.norm, x)
    memory = [_linear(graph, block.cross.memory, x) for block in decoder.blocks]
    width = sum(block.cross.memory.out_features for block in decoder.blocks)
    graph.output("memory", graph("Concat", *memory, axis=2), "batch", "source", width)
    return graph


def _step_graph(decoder: TransformerDecoder) -> _Graph:
    graph = _Graph()
    token = graph.input("token", torch.long, "batch")
    mask = graph.input("mask", torch.bool, "batch", "source")
    mask = graph("Unsqueeze", mask, torch.tensor([1, 2]))  # B 1 1 S
    heads = decoder.blocks[0].attention.heads
    width = decoder.output.in_features // heads
    memory, past = (
        [
            graph.input(name, torch.float, "batch", heads, axis, width)
            for name in _names(axis, len(decoder.blocks))
        ]
        for axis in ("source", "past")
    )
    position = graph("Shape", past[0], start=2, end=3)  # how many came before

    def here(table: Tensor) -> str:
        return graph("Gather", table, position)

    positions = here(position_table(decoder.embedding))  # 1 D
    token = graph("Unsqueeze", token, torch.tensor([1]))
    x = _embed(graph, decoder.embedding, token, positions)  # B 1 D
    caches = []
    for number, block in enumerate(decoder.blocks):
        pair = slice(2 * number, 2 * number + 2)
        heard = _before(graph, block.attention_residual, x)
        query, *new = _project(graph, block.attention, heard, here)
        seen = [
            graph("Concat", old, added, axis=2)
            for old, added in zip(past[pair], new, strict=True)
        ]
        caches += seen
        said = _look(graph, block.attention, query, seen, None)
        x = _after(graph, block.attention_residual, x, said)
        heard = _before(graph, block.cross_residual, x)
        query = _heads(graph, _linear(graph, block.cross.query, heard), heads)
        said = _look(graph, block.cross, query, memory[pair], mask)
        x = _after(graph, block.cross_residual, x, said)
        x = _think(graph, block.feed_forward, block.feed_forward_residual, x)
    scores = _linear(graph, decoder.output, _norm(graph, decoder.norm, x))
    scores = graph("LogSoftmax", graph("Squeeze", scores, torch.tensor([1])), axis=1)
    symbols = decoder.output.out_features
    graph.output("log_probabilities", scores, "batch", symbols)
    for name, cache in zip(_names("next", len(decoder.blocks)), caches, strict=True):
        graph.output(name, cache, "batch", heads, "next", width)
    return graph


def _embed(graph: _Graph, layer: Embedding, tokens: str, positions: str) -> str:
    embedded = graph("Gather", layer.embedding.weight, tokens)
    scaled = graph("Mul", embedded, torch.tensor(layer.scale))
    return graph("Add", scaled, positions)


def _linear(graph: _Graph, layer: nn.Linear, x: str) -> str:
    turned = graph("Transpose", layer.weight, perm=[1, 0])
    return graph("Add", graph("MatMul", x, turned), layer.bias)


def _norm(graph: _Graph, layer: Normalization, x: str) -> str:
    match layer.norm:
        case nn.LayerNorm(weight=weight, bias=bias, eps=epsilon):
            return graph("LayerNormalization", x, weight, bias, epsilon=epsilon)
        case MaskedBatchNorm() as norm:  # its running averages are constants by now
            scale = norm.weight / (norm.running_variance + norm.epsilon).sqrt()
            shift = norm.bias - norm.running_mean * scale
            return graph("Add", graph("Mul", x, scale), shift)
        case _:
            return x


def _before(graph: _Graph, layer: Residual, x: str) -> str:
    return _norm(graph, layer.norm, x) if layer.order is NormOrder.PRE else x


def _after(graph: _Graph, layer: Residual, x: str, said: str) -> str:
    total = graph("Add", x, said)
    return _norm(graph, layer.norm, total) if layer.order is NormOrder.POST else total


def _heads(graph: _Graph, x: str, heads: int) -> str:
    split = graph("Reshape", x, torch.tensor([0, 0, heads, -1]))  # B T H K
    return graph("Transpose", split, perm=[0, 2, 1, 3])


def _project(
    graph: _Graph, layer: SelfAttention, x: str, here: Callable[[Tensor], str]
) -> list[str]:
    """Query, key and value, B H T K each, from B T D.

    Args:
        graph: what is extended.
        layer: whose projection it is.
        x: what is projected.
        here: picks the rows of a table that belong to the positions of x.
    """
    three = torch.tensor([0, 0, 3, layer.heads, -1])
    split = graph("Reshape", _linear(graph, layer.project, x), three)  # B T 3 H K
    split = graph("Transpose", split, perm=[2, 0, 3, 1, 4])  # 3 B H T K
    query, key, value = (graph("Gather", split, torch.tensor(i)) for i in range(3))
    if isinstance(layer.turn, Rotary):
        query, key = (_turn(graph, part, layer.turn, here) for part in (query, key))
    return [query, key, value]


def _turn(graph: _Graph, x: str, layer: Rotary, here: Callable[[Tensor], str]) -> str:
    """Turn every pair (a, b) of features: (a, b) cos + (−b, a) sin."""
    cosine, sine, quarter_turn = turning(2 * layer.sine.shape[1])
    across = graph("MatMul", x, quarter_turn)
    return graph("Add", graph("Mul", x, here(cosine)), graph("Mul", across, here(sine)))


def _look(
    graph: _Graph, layer: MultiHead, query: str, memory: Sequence[str], mask: str | None
) -> str:
    key, value = memory
    scale = math.sqrt(layer.heads / layer.output.in_features)
    query = graph("Mul", query, torch.tensor(scale))
    scores = graph("MatMul", query, graph("Transpose", key, perm=[0, 1, 3, 2]))
    if mask is not None:
        scores = graph("Where", mask, scores, torch.tensor(-torch.inf))
    seen = graph("MatMul", graph("Softmax", scores, axis=3), value)  # B H T K
    seen = graph("Transpose", seen, perm=[0, 2, 1, 3])
    merged = graph("Reshape", seen, torch.tensor([0, 0, -1]))
    return _linear(graph, layer.output, merged)


def _think(graph: _Graph, layer: FeedForward, residual: Residual, x: str) -> str:
    first, second = (part for part in layer if isinstance(part, nn.Linear))
    hidden = graph("Relu", _linear(graph, first, _before(graph, residual, x)))
    return _after(graph, residual, x, _linear(graph, second, hidden))
