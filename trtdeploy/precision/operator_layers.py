"""Operators that TensorRT's parser builds from several layers, each with a result of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.weights import narrow_values
from trtdeploy.precision.widening import NARROW

_OPSET_OF_AXES_OPERAND = 13
"""From here on ReduceSum reads its axes from an operand; its relatives do from opset 18 on."""


def split_operators(index: ModelIndex) -> bool:
    """Write the narrow operators of ``_SPLITTERS`` as the layers they become.

    Before: ``l = ReduceL2(x)``, all FP16.
    After: ``x2 = Mul(x, x)``, ``s = ReduceSum(x2)``, ``l = Sqrt(s)``, so that the square of an
    element above 255 overflows as it does on the device.

    The layers were read from the network that TensorRT-RTX 1.7 parses, and from onnx-tensorrt for
    TensorRT 8.6; newer parsers compute ReduceL2 and ReduceLogSum in FP32, older ones do not.

    Returns:
        True when there was one; the index does not know the new nodes.
    """
    names = NameSource.for_graph(index.model.graph)
    found = False
    # innermost first: rebuilding a graph copies its nodes, bodies included
    for scope in reversed(index.scopes):
        layers = [_split(_Layers(scope, node, names, index.model.opset)) for node in scope.nodes]
        if any(layers):
            found = True
            nodes = [made or [node] for node, made in zip(scope.nodes, layers, strict=True)]
            del scope.graph.node[:]
            scope.graph.node.extend(chain.from_iterable(nodes))
    return found


def _split(layers: _Layers) -> list[NodeProto]:
    split = _SPLITTERS.get(layers.node.op_type)
    if split and layers.dtype in NARROW and layers.node.domain in ONNX_DOMAINS:
        split(layers)
    return layers.made


class _Layers:
    """The nodes that take the place of ``node``; empty as long as it stays."""

    def __init__(self, scope: Scope, node: NodeProto, names: NameSource, opset: int) -> None:
        self.node = node
        self.opset = opset
        self.made: list[NodeProto] = []
        self.result = node.output[0] if node.output else ""
        self.dtype = scope.type_of(self.result)
        self._scope = scope
        self._names = names

    def add(self, op_type: str, operands: Sequence[str], *, last: bool) -> str:
        """Add a node and return its result, which is that of the whole when it is the last."""
        result = self.result if last else self._names.make(f"{self.result}_{op_type.lower()}")
        name = self._names.make(f"{self.node.name}_{op_type.lower()}")
        self.made.append(helper.make_node(op_type, operands, [result], name=name))
        return result

    def add_constant(self, values: npt.NDArray[np.generic], suffix: str) -> str:
        """Add an initializer in the type of the values."""
        name = self._names.make(f"{self.result}_{suffix}")
        self._scope.graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def add_narrow_constant(self, value: float, suffix: str) -> str:
        """Add a scalar initializer in the type of the result."""
        name = self._names.make(f"{self.result}_{suffix}")
        raw = narrow_values(np.array(value, np.float32), self.dtype).tobytes()
        tensor = TensorProto(name=name, data_type=self.dtype.code, raw_data=raw)
        self._scope.graph.initializer.append(tensor)
        return name


def _split_reduction(before: str, after: str) -> Callable[[_Layers], None]:
    def split(layers: _Layers) -> None:
        node = layers.node
        if any(a.name == "noop_with_empty_axes" and a.i for a in node.attribute):
            return
        current = node.input[0]
        if before:
            current = layers.add(before, [current, current], last=False)
        total = layers.add("ReduceSum", [current, *node.input[1:]], last=not after)
        _copy_axes(layers, layers.made[-1])
        if after:
            layers.add(after, [total], last=True)

    return split


def _copy_axes(layers: _Layers, reduction: NodeProto) -> None:
    for attribute in layers.node.attribute:
        if attribute.name == "axes" and layers.opset >= _OPSET_OF_AXES_OPERAND:
            axes = np.array(attribute.ints, np.int64)
            reduction.input.append(layers.add_constant(axes, "axes"))
        else:
            reduction.attribute.append(attribute)


def _split_sum(layers: _Layers) -> None:
    if len(layers.node.input) > 1:
        _add_up(layers, layers.node.input, last=True)


def _split_mean(layers: _Layers) -> None:
    total = _add_up(layers, layers.node.input, last=False)
    share = layers.add_narrow_constant(1 / len(layers.node.input), "share")
    layers.add("Mul", [total, share], last=True)


def _add_up(layers: _Layers, operands: Sequence[str], *, last: bool) -> str:
    total = operands[0]
    for position, operand in enumerate(operands[1:], start=2):
        total = layers.add("Add", [total, operand], last=last and position == len(operands))
    return total


_SPLITTERS: dict[str, Callable[[_Layers], None]] = {
    "Mean": _split_mean,
    "ReduceL2": _split_reduction("Mul", "Sqrt"),
    "ReduceLogSum": _split_reduction("", "Log"),
    "ReduceSumSquare": _split_reduction("Mul", ""),
    "Sum": _split_sum,
}
