"""FindShapeInputsCheck: inputs whose values decide shapes inside the model."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import SHAPE_VALUE_TYPES
from trtdeploy.graph.shape_values import find_shape_tensor_inputs
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)

SHAPE_TENSOR_INPUT = FindingKind("shape-tensor-input", Severity.NOTE, Affects.ENGINE)
FLOAT_SHAPE_INPUT = FindingKind("float-shape-input", Severity.BLOCKER, Affects.ENGINE)


class FindShapeInputsCheck:
    """Find TensorRT's shape tensors: inputs that need a range of *values*, not only of sizes."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per input."""
        if not context.target.uses_tensorrt:
            return
        wanted = find_shape_tensor_inputs(context.prepared.index)
        for spec in context.prepared.model.input_specs():
            if spec.name not in wanted:
                continue
            if spec.dtype in SHAPE_VALUE_TYPES:
                yield SHAPE_TENSOR_INPUT.at(
                    WHOLE_GRAPH,
                    f"the values of input {spec.name!r} decide shapes inside the model, so every "
                    "optimization profile needs their min, opt and max besides its sizes",
                    f"Give value ranges for {spec.name!r} in the profile, as narrow as possible.",
                )
            else:
                yield FLOAT_SHAPE_INPUT.at(
                    WHOLE_GRAPH,
                    f"the values of the {spec.dtype.label} input {spec.name!r} decide shapes "
                    "inside the model; TensorRT reads shapes from INT32 and INT64 inputs only",
                    "Pass sizes as integers (Resize: sizes instead of scales), or fix the value.",
                )
