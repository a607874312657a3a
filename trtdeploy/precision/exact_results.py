"""Which results need no rounding: every element is one of the operands' elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import NodeProto, helper

from trtdeploy.graph.model import ONNX_DOMAINS

_BOUNDS_OF_CLIP = 3

_EXACT = frozenset(
    {
        # copies
        "Compress", "Concat", "ConcatFromSequence", "DepthToSpace", "Expand", "Flatten", "Gather",
        "GatherElements", "GatherND", "Identity", "OneHot", "Reshape", "ReverseSequence",
        "SequenceAt", "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Trilu",
        "Unique", "Unsqueeze",
        # selections, and changes of the sign bit
        "Abs", "Max", "Min", "Neg", "Relu", "TopK", "Where",
        # integers below the significand's width; larger elements are integers already
        "Ceil", "EyeLike", "Floor", "Hardmax", "Round", "Sign",
        # the constant is widened from its type; the results of bodies are rounded inside
        "Constant", "ConstantOfShape", "If", "Loop", "Scan",
    }
)  # fmt: skip

_Attributes = dict[str, Any]


def is_exact(node: NodeProto) -> bool:
    """True when narrow operands make results that the narrow type holds exactly.

    Rounding such a result would change no bit, only take time. What copies, selects or negates
    elements qualifies, unless an attribute can bring a number of its own. MaxPool and a Clip
    without both bounds do not: ONNX Runtime's kernels put the largest FP32 number in place of an
    infinity there, which rounding turns back.
    """
    if node.domain not in ONNX_DOMAINS:
        return False
    condition = _CONDITIONS.get(node.op_type)
    if condition is None:
        return node.op_type in _EXACT
    return condition(node, {a.name: helper.get_attribute_value(a) for a in node.attribute})


def _has_both_bounds(node: NodeProto, _: _Attributes) -> bool:
    return len(node.input) == _BOUNDS_OF_CLIP and all(node.input)


def _pads_with_an_operand(_: NodeProto, attributes: _Attributes) -> bool:
    return not attributes.get("value")


def _copies_the_nearest(_: NodeProto, attributes: _Attributes) -> bool:
    return (
        attributes.get("mode", b"nearest") == b"nearest"
        and attributes.get("coordinate_transformation_mode") != b"tf_crop_and_resize"
    )


def _overwrites(_: NodeProto, attributes: _Attributes) -> bool:
    return bool(attributes.get("reduction", b"none") == b"none")


_CONDITIONS: dict[str, Callable[[NodeProto, _Attributes], bool]] = {
    "Clip": _has_both_bounds,
    "Pad": _pads_with_an_operand,
    "Resize": _copies_the_nearest,
    "Upsample": _copies_the_nearest,
    "ScatterElements": _overwrites,
    "ScatterND": _overwrites,
}
