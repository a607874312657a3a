"""FP32 in place of FP16 and BF16 wherever a model writes a type: tensors, attributes, bodies."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.model import ONNX_DOMAINS

NARROW = frozenset({DType.FLOAT16, DType.BFLOAT16})

_NARROW_CODES = frozenset(dtype.code for dtype in NARROW)
_TYPE_ATTRIBUTES = frozenset(
    {"dtype", "output_dtype", "output_datatype", "precision", "softmax_precision", "stash_type"}
)
"""Attributes that hold a type (ONNX operator specification), other than the ``to`` of a Cast."""


def is_cast(node: NodeProto) -> bool:
    """True for a standard Cast."""
    return node.op_type == "Cast" and node.domain in ONNX_DOMAINS


def widen_tensor(tensor: TensorProto) -> None:
    """Make a narrow tensor FP32, in place; every value has an exact FP32 form."""
    if tensor.data_type not in _NARROW_CODES:
        return
    values = numpy_helper.to_array(tensor).astype(np.float32)
    tensor.ClearField("int32_data")
    tensor.raw_data = values.tobytes()
    tensor.data_type = TensorProto.FLOAT


def widen_type(declared: TypeProto) -> None:
    """Make a declared narrow type FP32, in place; the types inside containers too."""
    if declared.HasField("tensor_type"):
        if declared.tensor_type.elem_type in _NARROW_CODES:
            declared.tensor_type.elem_type = TensorProto.FLOAT
    elif declared.HasField("sequence_type"):
        widen_type(declared.sequence_type.elem_type)
    elif declared.HasField("optional_type"):
        widen_type(declared.optional_type.elem_type)


def is_narrow_container(declared: TypeProto) -> bool:
    """True for a sequence of, or an optional, narrow tensor."""
    widened = TypeProto()
    widened.CopyFrom(declared)
    widen_type(widened)
    return not declared.HasField("tensor_type") and widened != declared


def widen_attributes(node: NodeProto) -> None:
    """Widen constants and types that stand in attributes; a Cast keeps its target.

    ``stash_type`` and its kin say in which type a node computes inside. Emulation computes in
    FP32 and rounds what is stored.
    """
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            widen_tensor(attribute.t)
        elif attribute.type == AttributeProto.TYPE_PROTO:
            widen_type(attribute.tp)
        elif attribute.name in _TYPE_ATTRIBUTES and attribute.i in _NARROW_CODES:
            attribute.i = TensorProto.FLOAT


def names_narrow_type(node: NodeProto) -> bool:
    """True when an attribute, the target of a Cast included, is or says a narrow type."""
    if any(a.name == "to" and a.i in _NARROW_CODES for a in node.attribute):
        return True
    widened = NodeProto()
    widened.CopyFrom(node)
    widen_attributes(widened)
    return widened != node
