"""Nodes that take ONNX's shape inference, and with it this process, down.

Found with onnx 1.23 by inferring every operator of every domain with missing and odd operands.
"""

from __future__ import annotations

import math

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, defs, helper, numpy_helper

from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel, walk_graphs, walk_nodes

SHIELDED_DOMAIN = "trtdeploy.shielded"
"""Where valid nodes go whose inference dereferences a null pointer when a type is unknown."""

_SHIELDED = frozenset(
    {
        ("", "EyeLike"),
        ("", "RegexFullMatch"),
        ("ai.onnx.ml", "DictVectorizer"),
        ("ai.onnx.ml", "LabelEncoder"),
        ("ai.onnx.ml", "TreeEnsemble"),
    }
)

LARGEST_SIZE = (1 << 31) - 1
"""Larger sizes cannot be real, and inference allocates memory in proportion to some of them."""


def find_missing_domains(proto: ModelProto) -> set[str]:
    """Return the domains of nodes that the model does not import; "" is the standard one."""
    imported = {"" if o.domain in ONNX_DOMAINS else o.domain for o in proto.opset_import}
    used = {"" if n.domain in ONNX_DOMAINS else n.domain for n in walk_nodes(proto.graph)}
    return used - imported


def import_used_domains(proto: ModelProto, *further: str) -> None:
    """Name every used operator set: ONNX infers nothing about a model that leaves one out.

    Args:
        proto: Changed in place.
        further: Domains that nodes will get, not imported yet.
    """
    for domain in sorted(find_missing_domains(proto).union(further)):
        version = 1 if domain else defs.onnx_opset_version()
        proto.opset_import.add(domain=domain, version=version)


def forget_impossible_sizes(model: OnnxModel) -> None:
    """Make negative and absurd sizes of inputs unknown, in nested graphs too.

    Old exporters write -1 for a free axis, which ONNX does not know.
    """
    for graph in walk_graphs(model.graph):
        for value in graph.input:
            for dim in value.type.tensor_type.shape.dim:
                if not 0 <= dim.dim_value <= LARGEST_SIZE:
                    dim.ClearField("dim_value")


def find_damaged_constants(model: OnnxModel) -> list[str]:
    """Return the constants whose data does not fit their shape and type, and empty them."""
    damaged = []
    for graph in walk_graphs(model.graph):
        for tensor in graph.initializer:
            if tensor.name in model.weights and graph is model.graph:
                continue  # the loader has compared its size with the file
            if _is_readable(tensor):
                continue
            damaged.append(tensor.name)
            kept = tensor.name
            tensor.Clear()
            tensor.name, tensor.data_type = kept, TensorProto.FLOAT
            tensor.dims.append(0)
    return damaged


def _is_readable(tensor: TensorProto) -> bool:
    if tensor.data_type == TensorProto.STRING:
        return len(tensor.string_data) == math.prod(tensor.dims)
    if min(tensor.dims, default=0) < 0 or math.prod(tensor.dims) > LARGEST_SIZE:
        return False
    try:
        numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):
        return False
    return True


def find_fatal_attribute(node: NodeProto) -> str:
    """Return why inference of a node would crash or run out of memory; empty if it would not."""
    if node.domain not in ONNX_DOMAINS:
        return ""
    if node.op_type == "GatherND" and integer_of(node, "batch_dims", 0) < 0:
        return "batch_dims is negative"
    if node.op_type == "Split":
        wanted = integer_of(node, "num_outputs", len(node.output))
        if wanted != len(node.output):
            return f"num_outputs is {wanted}, but the node has {len(node.output)} outputs"
    return ""


def is_dangerous(node: NodeProto) -> bool:
    """True for a node that ``shield_crashing_nodes`` would move."""
    return (node.domain, node.op_type) in _SHIELDED or bool(find_fatal_attribute(node))


def shield_crashing_nodes(main: GraphProto) -> None:
    """Move the nodes out of reach of inference, and declare the types it would have found."""
    for graph in walk_graphs(main):
        for node in graph.node:
            if find_fatal_attribute(node):
                node.domain = SHIELDED_DOMAIN
                continue
            if (node.domain, node.op_type) not in _SHIELDED:
                continue
            code = _output_type_of(node)
            if node.op_type == "EyeLike" and not code:
                continue  # only an explicit dtype leads to the faulty branch
            if code and node.output:
                graph.value_info.append(helper.make_tensor_value_info(node.output[0], code, None))
            node.domain = SHIELDED_DOMAIN


def _output_type_of(node: NodeProto) -> int:
    if node.op_type == "EyeLike":
        return integer_of(node, "dtype", 0)
    return TensorProto.BOOL if node.op_type == "RegexFullMatch" else TensorProto.UNDEFINED
