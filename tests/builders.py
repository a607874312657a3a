"""Small ONNX models, built in code, for every test that needs one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.normalization import normalize_model

FLOAT, FLOAT16, BFLOAT16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
INT64, INT32 = TensorProto.INT64, TensorProto.INT32
UINT8, BOOL = TensorProto.UINT8, TensorProto.BOOL
FIRST_IR = {9: 4, 10: 5, 11: 6, 13: 7, 17: 8, 18: 8, 21: 10, 22: 10}

Shape = Sequence[int | str] | None
Feeds = Mapping[str, Any]


def value(name: str, shape: Shape = ("N", 4), dtype: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def constant(name: str, values: Any, dtype: Any = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def op(op_type: str, inputs: str, outputs: str, name: str | None = None, **attrs: Any) -> NodeProto:
    """Make a node; operands are separated by spaces, ``-`` leaves an optional one out.

    Without ``name`` the node is called like its first result.
    """
    reads = ["" if operand == "-" else operand for operand in inputs.split()]
    writes = outputs.split()
    if name is None:
        name = writes[0]
    return helper.make_node(op_type, reads, writes, name=name, **attrs)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
    name: str = "tested",
) -> GraphProto:
    return helper.make_graph(list(nodes), name, list(inputs), list(outputs), list(constants))


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    constants: Sequence[TensorProto] = (),
    *,
    opset: int = 17,
    domains: Iterable[str] = (),
) -> ModelProto:
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    proto = helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=opsets)
    proto.ir_version = FIRST_IR.get(opset, 10)
    return proto


def chain(
    op_types: Iterable[str], *, constants: Sequence[TensorProto] = (), opset: int = 17
) -> ModelProto:
    """Make ``x -> v0 -> v1 ... -> y``; ``Add:c`` reads the constant ``c`` as second operand."""
    nodes, current = [], "x"
    for position, spelled in enumerate(op_types):
        op_type, _, second = spelled.partition(":")
        operands = f"{current} {second}" if second else current
        nodes.append(op(op_type, operands, f"v{position}"))
        current = f"v{position}"
    nodes[-1].output[0] = "y"
    return model(nodes, [value("x")], [value("y")], constants, opset=opset)


def random_array(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(0, scale, shape).astype(np.float32)


def save(proto: ModelProto, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(proto.SerializeToString())
    return path


def loaded(proto: ModelProto, folder: Path) -> OnnxModel:
    """Return the model as a user's file is seen, large weights on the disk."""
    return load_model(save(proto, folder / "model.onnx"))


def in_memory(proto: ModelProto) -> OnnxModel:
    """Return a model without a file; fine for what reads no weights from the disk."""
    return OnnxModel(proto, Path("memory.onnx"))


def normalized(proto: ModelProto) -> OnnxModel:
    return normalize_model(in_memory(proto))


def find_node(proto: ModelProto, name: str) -> NodeProto:
    return next(node for node in walk_nodes(proto.graph) if node.name == name)


def count_ops(proto: ModelProto, op_type: str) -> int:
    return sum(node.op_type == op_type for node in walk_nodes(proto.graph))


def external_tensor(
    name: str, dims: Sequence[int], dtype: int = FLOAT, **entries: object
) -> TensorProto:
    """Make a tensor whose data is elsewhere; ``entries`` are location, offset and length."""
    tensor = TensorProto(name=name, data_type=dtype, dims=dims)
    tensor.data_location = TensorProto.EXTERNAL
    for key, entry in entries.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


def branch_node(then_branch: GraphProto, else_branch: GraphProto, output: str) -> NodeProto:
    """Make ``output = If(flag)``, the then branch first."""
    node = op("If", "flag", output, "pick" if output == "y" else None)
    node.attribute.append(helper.make_attribute("then_branch", then_branch))
    node.attribute.append(helper.make_attribute("else_branch", else_branch))
    return node


def branch_model(
    then_nodes: Sequence[NodeProto],
    else_nodes: Sequence[NodeProto],
    *,
    before: Sequence[NodeProto] = (),
    after: Sequence[NodeProto] = (),
    constants: Sequence[TensorProto] = (),
    inner_constants: tuple[Sequence[TensorProto], Sequence[TensorProto]] = ((), ()),
) -> ModelProto:
    """Make ``y = If(flag)`` over two branches that read ``x`` and compute ``t`` or ``e``.

    With ``after`` the result of the If is ``p``, and ``after`` computes ``y`` from it.
    ``inner_constants`` are those of the then branch and those of the else branch.
    """
    pick = branch_node(
        graph(then_nodes, [], [value("t", None)], inner_constants[0]),
        graph(else_nodes, [], [value("e", None)], inner_constants[1]),
        "p" if after else "y",
    )
    inputs = [value("x"), value("flag", (), BOOL)]
    return model([*before, pick, *after], inputs, [value("y")], constants)


def loop_model(body_nodes: Sequence[NodeProto], constants: Sequence[TensorProto]) -> ModelProto:
    """Make ``y = Loop(3 times)`` whose state ``s`` starts as ``x``; the body makes ``s_next``."""
    body = graph(
        [*body_nodes, op("Identity", "go_on", "go_on_next")],
        [value("i", (), INT64), value("go_on", (), BOOL), value("s")],
        [value("go_on_next", (), BOOL), value("s_next")],
    )
    return model(
        [op("Loop", "trips always x", "y", "repeat", body=body)],
        [value("x")],
        [value("y")],
        [constant("trips", 3, np.int64), constant("always", True, np.bool_), *constants],
    )
