"""A Transformer in the operators of ONNX: a graph that encodes, a graph for each step.

Axes: B batch, S source, T target so far, D width, H heads, K width of one head, M width
of all keys and values (2·D for each decoder block).
"""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.data.vocabulary import PAD
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import (
    LayerNorm,
    MaskedBatchNorm,
    NormOrder,
    Residual,
)
from seq2seq_lib.models.positional import Rotary
from seq2seq_lib.models.transformer_blocks import Embedding, FeedForward
from seq2seq_lib.models.transformer_stacks import TransformerDecoder, TransformerEncoder
from seq2seq_lib.pretrained.export.engine import engine, position_table, turning

POSITIONS = "positions"
"""Under which a graph notes how many positions it knows."""


def cache_names(axis: str, blocks: int) -> list[str]:
    """The keys and values of every block, as inputs and outputs are called."""
    return [
        f"{axis}_{kind}_{block}" for block in range(blocks) for kind in ("key", "value")
    ]


class Graph:
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


def encoder_graph(encoder: TransformerEncoder, decoder: TransformerDecoder) -> Graph:
    """From a padded source, B S, to keys and values for the decoder, B S M."""
    graph = Graph()
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
        inputs = _before(graph, block.attention_residual, x)
        query, key, value = _project(graph, block.attention, inputs, here)
        output = _attend(graph, block.attention, query, (key, value), mask)
        x = _after(graph, block.attention_residual, x, output)
        x = _feed_forward(graph, block.feed_forward, block.feed_forward_residual, x)
    x = _norm(graph, encoder.norm, x)
    layers = [
        layer
        for block in decoder.blocks
        for layer in (block.cross.key, block.cross.value)
    ]
    states = graph("Concat", *(_linear(graph, layer, x) for layer in layers), axis=2)
    width = sum(layer.out_features for layer in layers)
    graph.output("states", states, "batch", "source", width)
    return graph


def step_graph(decoder: TransformerDecoder) -> Graph:
    """From a symbol for each row and the caches to scores and longer caches."""
    graph = Graph()
    token = graph.input("token", torch.long, "batch")
    mask = graph.input("mask", torch.bool, "batch", "source")
    mask = graph("Unsqueeze", mask, torch.tensor([1, 2]))  # B 1 1 S
    heads = decoder.blocks[0].attention.heads
    width = decoder.output.in_features // heads
    source, past = (
        [
            graph.input(name, torch.float, "batch", heads, axis, width)
            for name in cache_names(axis, len(decoder.blocks))
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
        inputs = _before(graph, block.attention_residual, x)
        query, *new = _project(graph, block.attention, inputs, here)
        longer = [
            graph("Concat", old, added, axis=2)
            for old, added in zip(past[pair], new, strict=True)
        ]
        caches += longer
        output = _attend(graph, block.attention, query, longer, None)
        x = _after(graph, block.attention_residual, x, output)
        inputs = _before(graph, block.cross_residual, x)
        query = _heads(graph, _linear(graph, block.cross.query, inputs), heads)
        output = _attend(graph, block.cross, query, source[pair], mask)
        x = _after(graph, block.cross_residual, x, output)
        x = _feed_forward(graph, block.feed_forward, block.feed_forward_residual, x)
    scores = _linear(graph, decoder.output, _norm(graph, decoder.norm, x))
    scores = graph("LogSoftmax", graph("Squeeze", scores, torch.tensor([1])), axis=1)
    symbols = decoder.output.out_features
    graph.output("log_probabilities", scores, "batch", symbols)
    for name, cache in zip(
        cache_names("next", len(decoder.blocks)), caches, strict=True
    ):
        graph.output(name, cache, "batch", heads, "next", width)
    return graph


def _embed(graph: Graph, layer: Embedding, tokens: str, positions: str) -> str:
    embedded = graph("Gather", layer.embedding.weight, tokens)
    scaled = graph("Mul", embedded, torch.tensor(layer.scale))
    return graph("Add", scaled, positions)


def _linear(graph: Graph, layer: nn.Linear, x: str) -> str:
    turned = graph("Transpose", layer.weight, perm=[1, 0])
    return graph("Add", graph("MatMul", x, turned), layer.bias)


def _norm(graph: Graph, layer: nn.Module, x: str) -> str:
    match layer:
        case LayerNorm(weight=weight, bias=bias, epsilon=epsilon):
            return graph("LayerNormalization", x, weight, bias, epsilon=epsilon)
        case MaskedBatchNorm() as norm:  # its running averages are constants by now
            scale = norm.weight / (norm.running_variance + norm.epsilon).sqrt()
            shift = norm.bias - norm.running_mean * scale
            return graph("Add", graph("Mul", x, scale), shift)
        case _:
            return x


def _before(graph: Graph, layer: Residual, x: str) -> str:
    return _norm(graph, layer.norm, x) if layer.order is NormOrder.PRE else x


def _after(graph: Graph, layer: Residual, x: str, output: str) -> str:
    total = graph("Add", x, output)
    return _norm(graph, layer.norm, total) if layer.order is NormOrder.POST else total


def _heads(graph: Graph, x: str, heads: int) -> str:
    split = graph("Reshape", x, torch.tensor([0, 0, heads, -1]))  # B T H K
    return graph("Transpose", split, perm=[0, 2, 1, 3])


def _project(
    graph: Graph, layer: MultiHeadAttention, x: str, here: Callable[[Tensor], str]
) -> list[str]:
    """Query, key and value, B H T K each, from B T D.

    Args:
        graph: what is extended.
        layer: whose projection it is.
        x: what is projected.
        here: picks the rows of a table that belong to the positions of x.
    """
    query, key, value = (
        _heads(graph, _linear(graph, part, x), layer.heads)
        for part in (layer.query, layer.key, layer.value)
    )
    if isinstance(layer.rotary, Rotary):
        query, key = (_rotate(graph, part, layer.rotary, here) for part in (query, key))
    return [query, key, value]


def _rotate(graph: Graph, x: str, layer: Rotary, here: Callable[[Tensor], str]) -> str:
    """Turn every pair (a, b) of features: (a, b) cos + (−b, a) sin."""
    cosine, sine, quarter_turn = turning(2 * layer.sine.shape[1])
    across = graph("MatMul", x, quarter_turn)
    return graph("Add", graph("Mul", x, here(cosine)), graph("Mul", across, here(sine)))


def _attend(
    graph: Graph,
    layer: MultiHeadAttention,
    query: str,
    source: Sequence[str],
    mask: str | None,
) -> str:
    key, value = source
    scale = math.sqrt(layer.heads / layer.output.in_features)
    query = graph("Mul", query, torch.tensor(scale))
    scores = graph("MatMul", query, graph("Transpose", key, perm=[0, 1, 3, 2]))
    if mask is not None:
        scores = graph("Where", mask, scores, torch.tensor(-torch.inf))
    mixed = graph("MatMul", graph("Softmax", scores, axis=3), value)  # B H T K
    mixed = graph("Transpose", mixed, perm=[0, 2, 1, 3])
    merged = graph("Reshape", mixed, torch.tensor([0, 0, -1]))
    return _linear(graph, layer.output, merged)


def _feed_forward(graph: Graph, layer: FeedForward, residual: Residual, x: str) -> str:
    hidden = graph("Relu", _linear(graph, layer.first, _before(graph, residual, x)))
    return _after(graph, residual, x, _linear(graph, layer.second, hidden))
