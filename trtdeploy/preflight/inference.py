"""ONNX shape inference on the structure alone, with symbolic or concrete sizes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import ModelProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import Shape, TensorSpec
from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel, walk_graphs
from trtdeploy.graph.onnx_defects import LARGEST_SIZE
from trtdeploy.graph.shape_inference import (
    Dims,
    copy_structure,
    infer_with_values,
    read_shapes,
    require_known,
)

_ERROR = re.compile(
    r"\(op_type:[^,]*, node name: (#\d+(?:__\d+)*)\): (.*?)(?=\(op_type:|\Z)", re.DOTALL
)
"""One error in the text of an InferenceError; node names are keys (see ``label_nodes``)."""
_TAGS = re.compile(r"\[(?:Shape|Type)InferenceError\]\s*|Inference error\(s\):\s*")
_CONSEQUENCE = "expected to have type but instead is null"
"""What inference says of every node behind the one that failed."""

_INTEGERS = {DType.INT32: np.int32, DType.INT64: np.int64}
_LARGEST = {DType.INT32: (1 << 31) - 1, DType.INT64: (1 << 63) - 1}


@dataclass(frozen=True)
class Sizes:
    """Sizes of inputs, and contents of the inputs that decide shapes.

    A symbol among the sizes stays a symbol.
    """

    dims: Mapping[str, Shape]
    values: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    @classmethod
    def at_point(cls, profile: OptimizationProfile, point: str) -> Sizes:
        """Return the sizes of ``profile`` at ``min``, ``opt`` or ``max``."""
        return cls(
            {name: shape.at(point) for name, shape in profile.shapes.items()},
            {name: value.at(point) for name, value in profile.values.items()},
        )


@dataclass(frozen=True)
class InferredShapes:
    """Result of one inference.

    Attributes:
        shapes: Sizes of every value whose rank is known.
        errors: What is wrong, by key of the node (``#7``); consequences are left out.
        types: Element type codes of the main graph's outputs; 0 when unknown.
    """

    shapes: Mapping[str, Dims]
    errors: Mapping[str, str]
    types: Mapping[str, int]

    def shape_of(self, name: str) -> Dims | None:
        """Return the sizes of a value, or None when not even its rank is known."""
        return self.shapes.get(name)

    def known_shape_of(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of a value when all of them are numbers."""
        dims = self.shapes.get(name)
        return None if dims is None else require_known(dims)


class InferenceStructure:
    """A model reduced to what shape inference needs.

    Large weights become inputs (only their shapes matter), declared shapes of inner values and
    outputs are dropped (they may be stale), and every unnamed size of an input gets the name that
    ``TensorSpec`` gives it.
    """

    def __init__(self, model: OnnxModel) -> None:
        self._proto = copy_structure(model)
        self.specs: dict[str, TensorSpec] = {s.name: s for s in model.input_specs()}
        self._initializers = {t.name: tuple(t.dims) for t in model.graph.initializer}
        for value in self._proto.graph.input:
            spec = self.specs.get(value.name)
            if spec is not None and spec.shape is not None:
                _name_dims(value.type.tensor_type.shape.dim, spec)

    def infer(self, sizes: Sizes | None = None) -> InferredShapes:
        """Run inference; without ``sizes`` the inputs keep their symbols."""
        proto = self._proto if sizes is None else self._with_sizes(sizes)
        try:
            inferred = infer_with_values(proto, strict=True)
        except ONNX_ERRORS as error:
            return self._infer_leniently(proto, str(error))
        return InferredShapes(self._read_shapes(inferred), {}, _read_types(inferred))

    def _infer_leniently(self, proto: ModelProto, text: str) -> InferredShapes:
        try:
            inferred = infer_with_values(proto)
        except ONNX_ERRORS:
            inferred = proto
        return InferredShapes(
            self._read_shapes(inferred), _parse_errors(text), _read_types(inferred)
        )

    def _with_sizes(self, sizes: Sizes) -> ModelProto:
        proto = ModelProto()
        proto.CopyFrom(self._proto)
        kept = []
        for value in proto.graph.input:
            spec, dims = self.specs.get(value.name), sizes.dims.get(value.name)
            if spec is None or dims is None or spec.rank != len(dims):
                kept.append(value)
                continue
            contents = sizes.values.get(value.name)
            if contents is not None and _fits(spec, dims, contents):
                array = np.array(contents, _INTEGERS[spec.dtype]).reshape(require_known(dims) or ())
                proto.graph.initializer.append(numpy_helper.from_array(array, value.name))
                continue
            for dim, size in zip(value.type.tensor_type.shape.dim, dims, strict=True):
                if isinstance(size, int) and 0 <= size <= LARGEST_SIZE:
                    dim.dim_value = size
            kept.append(value)
        del proto.graph.input[:]
        proto.graph.input.extend(kept)
        return proto

    def _read_shapes(self, proto: ModelProto) -> dict[str, Dims]:
        shapes: dict[str, Dims] = dict(self._initializers)
        for graph in walk_graphs(proto.graph):
            shapes.update(read_shapes(graph))
        return shapes


def _name_dims(dims: object, spec: TensorSpec) -> None:
    for dim, wanted in zip(dims, spec.shape or (), strict=True):  # type: ignore[call-overload]
        if isinstance(wanted, str):
            dim.dim_param = wanted


def _fits(spec: TensorSpec, dims: Shape, contents: tuple[int, ...]) -> bool:
    known = require_known(dims)
    return (
        spec.dtype in _INTEGERS
        and known is not None
        and min(known, default=0) >= 0
        and math.prod(known) == len(contents)
        and all(abs(value) <= _LARGEST[spec.dtype] for value in contents)
    )


def _read_types(proto: ModelProto) -> dict[str, int]:
    return {value.name: value.type.tensor_type.elem_type for value in proto.graph.output}


def _parse_errors(text: str) -> dict[str, str]:
    errors: dict[str, str] = {}
    for key, found in _ERROR.findall(text):
        reason = _TAGS.sub("", found).strip()
        if reason and _CONSEQUENCE not in reason:
            errors.setdefault(key, reason)
    return errors
