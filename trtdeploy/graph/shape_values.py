"""Which values decide shapes: the operands TensorRT must know on the host."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.core.dtypes import SHAPE_VALUE_TYPES, DType
from trtdeploy.graph.index import ModelIndex, Scope

SHAPE_SLOTS: dict[str, tuple[int, ...]] = {
    "Reshape": (1,),
    "Expand": (1,),
    "Tile": (1,),
    "Slice": (1, 2, 3, 4),
    "Resize": (2, 3),
    "Upsample": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "ConstantOfShape": (0,),
    "TopK": (1,),
    "OneHot": (1,),
    "Unsqueeze": (1,),
    "Squeeze": (1,),
    "Split": (1,),
    "CenterCropPad": (1,),
    "AffineGrid": (1,),
    "Col2Im": (1, 2),
    "MaxUnpool": (2,),
}
"""Input slots whose values decide a shape (ONNX operator specification)."""

_SCALAR_OPS = frozenset(
    {
        "Add", "Sub", "Mul", "Div", "Mod", "Neg", "Abs", "Floor", "Ceil", "Round", "Sqrt", "Min",
        "Max", "Cast", "Concat", "Gather", "Slice", "Unsqueeze", "Squeeze", "Reshape", "Identity",
        "Where", "Equal", "Greater", "Less", "And", "Or", "Not", "ReduceProd", "ReduceSum",
        "ReduceMax", "ReduceMin", "Expand", "ConstantOfShape", "Range", "Split", "Clip", "Pow",
        "Flatten", "Transpose", "Tile", "GreaterOrEqual", "LessOrEqual", "ScatterND",
    }
)  # fmt: skip


def shape_slots_of(node: NodeProto) -> tuple[int, ...]:
    """Return the input slots of ``node`` whose values decide a shape."""
    return SHAPE_SLOTS.get(node.op_type, ())


def find_shape_arithmetic(index: ModelIndex) -> dict[str, NodeProto]:
    """Return the nodes that compute shape values, by name.

    Walks back from every shape slot until a ``Shape`` node, a constant, a graph input, or an
    operator that works on data. The branches of an If are walked too.
    """
    found: dict[str, NodeProto] = {}
    seen: set[tuple[int, str]] = set()
    pending = list(_iterate_shape_values(index))
    while pending:
        scope, name = pending.pop()
        owner = scope.resolve(name)
        node = owner.producers.get(name) if owner else None
        if owner is None or node is None or (id(owner), name) in seen:
            continue
        seen.add((id(owner), name))
        if node.op_type == "If":
            found[node.name] = node
            pending.extend(_iterate_branch_results(owner, node, name))
        elif node.op_type in _SCALAR_OPS:
            found[node.name] = node
            pending.extend((owner, source) for source in node.input if source)
    return found


def find_shape_tensor_inputs(index: ModelIndex) -> frozenset[str]:
    """Return the main-graph inputs whose values decide shapes (TensorRT's shape tensors)."""
    reached = {name for _, name in _iterate_shape_values(index)}
    for node in find_shape_arithmetic(index).values():
        reached.update(node.input)
    return frozenset(
        spec.name
        for spec in index.model.input_specs()
        if spec.name in reached and spec.dtype in SHAPE_VALUE_TYPES | {DType.FLOAT32}
    )


def _iterate_shape_values(index: ModelIndex) -> Iterator[tuple[Scope, str]]:
    for scope, node in index.nodes():
        for slot in shape_slots_of(node):
            if slot < len(node.input) and node.input[slot]:
                yield scope, node.input[slot]


def _iterate_branch_results(
    owner: Scope, node: NodeProto, name: str
) -> Iterator[tuple[Scope, str]]:
    slot = list(node.output).index(name)
    for body in owner.bodies_of(node):
        yield from ((body, value.name) for value in body.graph.output[slot : slot + 1])
