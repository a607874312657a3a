"""FindStringsCheck: text inside the model."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)
from trtdeploy.preflight.value_types import find_type_sources

STRING_TENSOR = FindingKind("string-tensor", Severity.BLOCKER, Affects.ENGINE)

_REMEDY = (
    "Leave text outside: return the class index as an integer, look labels up behind the engine, "
    "and cut the branch that makes text off the model."
)


class FindStringsCheck:
    """Find string tensors; no TensorRT has them, ONNX Runtime does."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per constant, input, output and node that brings text in."""
        if not context.target.uses_tensorrt:
            return
        engine = context.target.engine_title
        for source in find_type_sources(context, frozenset({DType.STRING})):
            yield STRING_TENSOR.at(
                source.place or WHOLE_GRAPH,
                f"{source.role} {source.name!r} holds text; {engine} has no string tensors",
                _REMEDY,
            )
