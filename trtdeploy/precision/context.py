"""What a precision rule may look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.core.number_formats import FLOAT_LIMITS, FloatLimits
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.weights import WeightRange

_SMALL_ELEMENTS = 64


@dataclass
class RuleContext:
    """A model seen by precision rules.

    Attributes:
        index: The model, normalised.
        low: The narrow type.
        ranges: Largest magnitude of each value in an FP32 run; empty without data.
    """

    index: ModelIndex
    low: DType
    ranges: Mapping[str, float] = field(default_factory=dict)
    _measured: dict[int, tuple[TensorProto, WeightRange]] = field(default_factory=dict)

    @property
    def limits(self) -> FloatLimits:
        """The range of the narrow type."""
        return FLOAT_LIMITS[self.low]

    def float_inputs(self, scope: Scope, node: NodeProto) -> list[tuple[int, str]]:
        """Return (slot, name) of the FP32 operands of ``node``."""
        return [
            (slot, name)
            for slot, name in enumerate(node.input)
            if name and scope.type_of(name) is DType.FLOAT32
        ]

    def float_outputs(self, scope: Scope, node: NodeProto) -> list[str]:
        """Return the FP32 results of ``node``."""
        return [name for name in node.output if name and scope.type_of(name) is DType.FLOAT32]

    def measure(self, tensor: TensorProto) -> WeightRange:
        """Return the range of an FP32 constant, measured once."""
        known = self._measured.get(id(tensor))
        if known is None:
            # the tensor is kept with its range: a freed object's id may come back as another's
            known = tensor, self.index.model.measure_initializer(tensor)
            self._measured[id(tensor)] = known
        return known[1]

    def small_constant(self, scope: Scope, name: str) -> npt.NDArray[Any] | None:
        """Return the values of a constant of at most 64 elements, else None."""
        tensor = scope.constant_of(name)
        if tensor is None or tensor.name in self.index.model.weights:
            return None
        array = numpy_helper.to_array(tensor)
        return array if array.size <= _SMALL_ELEMENTS else None
