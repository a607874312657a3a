"""Where an operand of a layer comes from: which DequantizeLinear, and what stands between."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.layer_costs import name_of
from trtdeploy.graph.model import ONNX_DOMAINS
from trtdeploy.graph.passes.adopt_contrib_quantization import CONTRIB_DOMAIN

SCALE_KEEPERS = frozenset(
    {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Slice", "Split",
     "MaxPool", "Expand", "DepthToSpace", "SpaceToDepth", "Concat", "Resize", "Gather"}
)  # fmt: skip
"""Operators that give the same numbers before and after DequantizeLinear with one scale.

TensorRT moves Q/DQ nodes past them (developer guide, "Explicit quantization": Q/DQ propagation).
"""

_LONGEST = 64
"""Steps of a walk towards a DequantizeLinear; hostile graphs can be endless."""
_ZERO_POINT_SLOT = 2


@dataclass(frozen=True)
class Dequantizer:
    """A DequantizeLinear and what its operands hold.

    Attributes:
        stored: Element type of the quantized numbers.
        scale: Its scales; None when they are computed at run time.
        is_constant: It dequantizes a constant: a weight.
        rank: Number of axes of that constant; 0 for an activation.
        has_zero_point: Its zero point is known and not 0 everywhere.
    """

    node: NodeProto
    stored: DType
    scale: npt.NDArray[np.generic] | None
    is_constant: bool
    rank: int
    has_zero_point: bool

    @property
    def has_bad_scale(self) -> bool:
        """True with a scale that is 0, negative, infinite or not a number."""
        if self.scale is None:
            return False
        values = self.scale.astype(np.float32)
        return not (np.isfinite(values) & (values > 0)).all()

    @property
    def is_per_tensor(self) -> bool:
        """True with one scale in all."""
        return self.scale is None or self.scale.size == 1

    @property
    def axis(self) -> int:
        """The axis its scales run along, as written (1 is ONNX's default)."""
        return integer_of(self.node, "axis", 1)

    @property
    def is_blocked(self) -> bool:
        """True when a scale serves a block within a channel."""
        return bool(value_of(self.node, "block_size"))


@dataclass(frozen=True)
class Operand:
    """One operand of a layer.

    Attributes:
        name: The value the layer reads.
        dequantizer: The DequantizeLinear before it; None for plain floating point.
        between: Nodes between the two, from the layer backwards.
    """

    name: str
    dequantizer: Dequantizer | None
    between: tuple[NodeProto, ...] = ()

    @property
    def cast(self) -> NodeProto | None:
        """The Cast that stands between, if any."""
        return next((node for node in self.between if node.op_type == "Cast"), None)

    @property
    def arithmetic(self) -> NodeProto | None:
        """A node between that computes, if any."""
        passing = SCALE_KEEPERS | {"Cast"}
        return next((node for node in self.between if node.op_type not in passing), None)


def is_quantizer(node: NodeProto | None) -> bool:
    """True for QuantizeLinear."""
    return _is_quantization(node, "QuantizeLinear")


def is_dequantizer(node: NodeProto | None) -> bool:
    """True for DequantizeLinear."""
    return _is_quantization(node, "DequantizeLinear")


def _is_quantization(node: NodeProto | None, op_type: str) -> bool:
    return (
        node is not None
        and node.op_type == op_type
        and node.domain in (*ONNX_DOMAINS, CONTRIB_DOMAIN)
        and len(node.input) > 1
        and len(node.output) > 0
    )


def trace_operand(index: ModelIndex, scope: Scope, name: str) -> Operand:
    """Follow a layer's operand back to the DequantizeLinear that it comes from.

    Through operators that move data, Casts, and arithmetic with a constant (a scaled query of an
    attention, a folded ``alpha``); every other operator computes a value of its own.
    """
    between: list[NodeProto] = []
    current = name
    for _ in range(_LONGEST):
        producer = scope.producer_of(current)
        if producer is None:
            break
        if is_dequantizer(producer):
            return Operand(name, read_dequantizer(index, scope, producer), tuple(between))
        source = _find_passed(scope, producer)
        if not source:
            break
        between.append(producer)
        current = source
    return Operand(name, None)


def _find_passed(scope: Scope, node: NodeProto) -> str:
    """Return the operand whose numbers ``node`` hands on, as they are or scaled; empty if none."""
    if node.domain not in ONNX_DOMAINS or not node.input:
        return ""
    if node.op_type in SCALE_KEEPERS or node.op_type == "Cast":
        return node.input[0]
    if node.op_type not in ("Mul", "Div", "Add", "Sub"):
        return ""
    computed = [name for name in node.input if scope.constant_of(name) is None]
    return computed[0] if len(computed) == 1 else ""


def read_dequantizer(index: ModelIndex, scope: Scope, node: NodeProto) -> Dequantizer:
    """Return what a DequantizeLinear reads; of a QuantizeLinear, what it writes with."""
    constant = find_constant(scope, node.input[0])
    return Dequantizer(
        node=node,
        stored=scope.type_of(node.input[0]),
        scale=read_constant(index.model, scope, node.input[1]),
        is_constant=constant is not None,
        rank=len(constant.dims) if constant is not None else 0,
        has_zero_point=_has_zero_point(index, scope, node),
    )


def _has_zero_point(index: ModelIndex, scope: Scope, node: NodeProto) -> bool:
    if len(node.input) <= _ZERO_POINT_SLOT:
        return False
    values = read_constant(index.model, scope, node.input[_ZERO_POINT_SLOT])
    return values is not None and bool(np.count_nonzero(values.astype(np.float32)))


def find_constant(scope: Scope, name: str) -> TensorProto | None:
    """Return the initializer behind a value, also one that QuantizeLinear narrows in the graph."""
    producer = scope.producer_of(name)
    if producer is not None and is_quantizer(producer):
        name = producer.input[0]
    return scope.constant_of(name)


def find_source(scope: Scope, name: str) -> NodeProto | None:
    """Return the node that computes a value, looking back through data movement."""
    producer = scope.producer_of(name)
    for _ in range(_LONGEST):
        if producer is None or producer.op_type not in SCALE_KEEPERS or not producer.input:
            return producer
        producer = scope.producer_of(producer.input[0])
    return None


def iterate_readers(scope: Scope, name: str) -> Iterator[NodeProto]:
    """Yield the nodes that read a value, looking through data movement."""
    pending, seen = [name], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in scope.uses_of(current):
            if use.node.op_type in SCALE_KEEPERS and use.node.domain in ONNX_DOMAINS:
                pending.extend(output for output in use.node.output if output)
            else:
                yield use.node


def quote(node: NodeProto) -> str:
    """Return the name of a node in quotes with its operator, e.g. ``'conv1' (Conv)``."""
    return f"{name_of(node)!r} ({node.op_type})"
