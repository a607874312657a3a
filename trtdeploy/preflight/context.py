"""What every check reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, numpy_helper

from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.index import Scope
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.passes.adopt_contrib_quantization import (
    Q_DQ_OPERATORS,
    is_contrib_quantization,
)
from trtdeploy.preflight.finding import Place
from trtdeploy.preflight.inference import InferenceStructure, InferredShapes
from trtdeploy.preflight.labels import place_of
from trtdeploy.preflight.operator_table import (
    BaselineTable,
    OperatorStatus,
    OperatorTable,
    load_baseline_table,
    load_operator_table,
)
from trtdeploy.preflight.prepared_model import CheckedNode, PreparedModel
from trtdeploy.preflight.target import CheckTarget


@dataclass(frozen=True)
class CheckContext:
    """A model, what it is meant for, and what is known about both.

    Attributes:
        model: The model as it was loaded, flaws included.
        prepared: The copy that checks walk over.
        target: Engine, recipe and device that the model is held against.
        optimization_profiles: Shapes the engine shall accept; may be empty.
        parser: What the target's own parser said; None when there is none to ask.
    """

    model: OnnxModel
    prepared: PreparedModel
    target: CheckTarget
    optimization_profiles: tuple[OptimizationProfile, ...]
    parser: ParserAnswer | None

    @cached_property
    def table(self) -> OperatorTable:
        """Operators of the target, as shipped."""
        return load_operator_table(self.target)

    @cached_property
    def baseline(self) -> BaselineTable:
        """Operators of the baseline, as shipped."""
        return load_baseline_table()

    @cached_property
    def structure(self) -> InferenceStructure:
        """The model reduced for shape inference."""
        return InferenceStructure(self.prepared.model)

    @cached_property
    def symbolic(self) -> InferredShapes:
        """Shapes with the symbols of the file."""
        return self.structure.infer()

    @property
    def asked(self) -> str:
        """Who said which operators the engine has."""
        if self.parser is not None:
            return f"{self.parser.parser} (installed parser)"
        if not self.target.uses_tensorrt:
            return f"shipped table: {self.baseline.title}"
        return f"shipped table: {self.table.source}"

    def standard_nodes(self) -> Iterator[CheckedNode]:
        """Yield the well-formed nodes of the standard operator set."""
        return (checked for checked in self.prepared.nodes if checked.is_standard)

    def quantization_nodes(self) -> Iterator[CheckedNode]:
        """Yield QuantizeLinear and DequantizeLinear, those that ONNX Runtime calls its own too."""
        return (
            checked
            for checked in self.prepared.nodes
            if (checked.is_standard and checked.node.op_type in Q_DQ_OPERATORS)
            or is_contrib_quantization(checked.node)
        )

    def place_of(self, node: NodeProto) -> Place:
        """Return what the user calls a node of the prepared model."""
        return place_of(self.prepared.labels, node)

    @cached_property
    def _nodes_by_key(self) -> dict[str, NodeProto]:
        return {checked.node.name: checked.node for checked in self.prepared.nodes}

    def find_node(self, key: str) -> NodeProto | None:
        """Return the node of the prepared model that messages of ONNX call ``key``."""
        return self._nodes_by_key.get(key)

    def place_of_key(self, key: str) -> Place:
        """Return what the user calls that node."""
        node = self.find_node(key)
        return self.place_of(node) if node is not None else Place(key)

    def engine_status_of(self, operator: str) -> OperatorStatus:
        """Return what the installed parser, or else the shipped table, says of an operator."""
        status = self.table.status_of(operator)
        if self.parser is None:
            return status
        if operator in self.parser.unsupported_operators:
            return OperatorStatus.UNSUPPORTED
        # parsers say yes to operators whose plugin they then do not find
        if self.parser.crashed or status is OperatorStatus.NEEDS_PLUGIN:
            return status
        return OperatorStatus.SUPPORTED

    def constant_of(self, scope: Scope, name: str) -> npt.NDArray[np.generic] | None:
        """Return the contents of a small constant; None if it is computed, large or damaged."""
        tensor = scope.constant_of(name) if name else None
        return read_constant(tensor) if tensor is not None else None


def read_constant(tensor: TensorProto) -> npt.NDArray[np.generic] | None:
    """Return the numbers of a tensor whose data is in memory and fits its shape; else None."""
    try:
        array: npt.NDArray[np.generic] = numpy_helper.to_array(tensor)
    except (ValueError, TypeError, KeyError):
        return None  # no data here (large weights stay on the disk), or data that does not fit
    return None if array.dtype == np.object_ else array  # strings are no numbers to compare


def input_name(node: NodeProto, slot: int) -> str:
    """Return the name at an input slot; empty when the optional input is left out."""
    return node.input[slot] if slot < len(node.input) else ""
