"""LowerOpsetPass: from opset 18, the oldest that PyTorch's dynamo exporter writes, to 17."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import AttributeProto, NodeProto, helper

from trtdeploy.core.errors import InputError
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass

FROM_OPSET, TO_OPSET = 18, 17

_NEW = frozenset({"BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "CenterCropPad", "Col2Im",
                  "GroupNormalization", "Mish"})  # fmt: skip
_REDUCTIONS = frozenset({"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
                         "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSumSquare"})  # fmt: skip
_PAD_AXES, _RESIZE_NEW = 3, ("antialias", "axes", "keep_aspect_ratio_policy")


class LowerOpsetPass:
    """Rewrite operators that opset 18 changed into their form of opset 17.

    Before: ``ReduceMean(x, axes)`` with the axes as an input, opset 18.
    After: ``ReduceMean(x)`` with the axes as an attribute, opset 17; same results.
    Source: ONNX Changelog.md, version 18 of the default operator set.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            InputError: A node has no form in opset 17; the model is half-rewritten then.
        """
        if model.opset != FROM_OPSET:
            raise InputError(f"opset {model.opset} cannot be lowered to {TO_OPSET}")
        PromoteConstantsPass()(model)
        for scope, node in build_index(model).nodes():
            if node.domain in ONNX_DOMAINS:
                _lower(node, model, scope)
        for opset in model.proto.opset_import:
            if opset.domain in ONNX_DOMAINS:
                opset.version = TO_OPSET
        model.changes.append(f"opset lowered from {FROM_OPSET} to {TO_OPSET}")


def _lower(node: NodeProto, model: OnnxModel, scope: Scope) -> None:
    if node.op_type in _NEW:
        raise _refuse(node, "is new in opset 18")
    if node.op_type in _REDUCTIONS:
        _lower_reduction(node, model, scope)
    change = _CHANGED.get(node.op_type)
    if change:
        change(node)


def _lower_reduction(node: NodeProto, model: OnnxModel, scope: Scope) -> None:
    axes = node.input[1] if len(node.input) > 1 else ""
    keep_all = any(a.name == "noop_with_empty_axes" and a.i for a in node.attribute)
    if not axes and keep_all:
        raise _refuse(node, "reduces nothing (noop_with_empty_axes)")
    if axes:
        found = read_constant(model, scope, axes)
        if found is None:
            raise _refuse(node, "computes its axes")
        values = [int(axis) for axis in found.ravel()]
        del node.input[1:]
        if values:
            node.attribute.append(helper.make_attribute("axes", values))
        elif keep_all:
            raise _refuse(node, "reduces nothing (noop_with_empty_axes)")
    _drop_attribute(node, "noop_with_empty_axes")


def _lower_split(node: NodeProto) -> None:
    # without sizes, opset 17 splits evenly; a last part that is smaller has no form there
    _drop_attribute(node, "num_outputs")


def _lower_pad(node: NodeProto) -> None:
    if len(node.input) > _PAD_AXES and node.input[_PAD_AXES]:
        raise _refuse(node, "pads some axes only")


def _lower_resize(node: NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name in _RESIZE_NEW and _is_set(attribute):
            raise _refuse(node, f"uses {attribute.name}")
    for name in _RESIZE_NEW:
        _drop_attribute(node, name)


def _lower_scatter(node: NodeProto) -> None:
    for attribute in node.attribute:
        if attribute.name == "reduction" and attribute.s in (b"max", b"min"):
            raise _refuse(node, f"reduces by {attribute.s.decode()}")


def _is_set(attribute: AttributeProto) -> bool:
    return bool(attribute.i or attribute.ints or attribute.s not in (b"", b"stretch"))


def _drop_attribute(node: NodeProto, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _refuse(node: NodeProto, reason: str) -> InputError:
    return InputError(
        f"{node.op_type} node {node.name!r} {reason}: it has no form in opset {TO_OPSET}",
        hint="Choose a newer one with --opset, for TensorRT 10 or newer.",
    )


_CHANGED: Mapping[str, Callable[[NodeProto], None]] = {
    "Split": _lower_split,
    "Pad": _lower_pad,
    "Resize": _lower_resize,
    "ScatterElements": _lower_scatter,
    "ScatterND": _lower_scatter,
}
