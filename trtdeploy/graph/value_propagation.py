"""ONNX shape inference that follows the contents of shapes, where that cannot eat the memory."""

from __future__ import annotations

from onnx import ModelProto, shape_inference

from trtdeploy.graph.model import walk_graphs

LARGEST_FOLLOWED = 1 << 16
"""Elements of a 1-D value up to which contents are followed."""


def infer_with_values(proto: ModelProto, *, strict: bool = False) -> ModelProto:
    """Return the model with inferred shapes, those that follow from contents of values included.

    ONNX's data propagation makes one entry per element of every 1-D value, so a file of a few bytes
    (``ConstantOfShape`` of 2**40 elements) could ask for terabytes. A first inference without it
    shows how large such values are.

    Args:
        proto: The structure of a model; it is not changed.
        strict: Raise for what is wrong in the graph instead of leaving it out.

    Raises:
        ONNX_ERRORS: What ``onnx.shape_inference.infer_shapes`` raises.
    """
    inferred = shape_inference.infer_shapes(proto, strict_mode=strict)
    if _find_longest(inferred) > LARGEST_FOLLOWED:
        return inferred
    return shape_inference.infer_shapes(proto, strict_mode=strict, data_prop=True)


def _find_longest(proto: ModelProto) -> int:
    longest = 0
    for graph in walk_graphs(proto.graph):
        for values in (graph.input, graph.value_info, graph.output):
            for value in values:
                dims = value.type.tensor_type.shape.dim
                if len(dims) == 1:
                    longest = max(longest, dims[0].dim_value)
    return longest
