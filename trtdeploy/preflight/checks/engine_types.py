"""FindEngineTypesCheck: element types that the engine does not have, or narrows silently."""

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
from trtdeploy.preflight.target import CheckTarget
from trtdeploy.preflight.value_types import TypeSource, find_type_sources

UNSUPPORTED_TYPE = FindingKind("unsupported-type", Severity.BLOCKER, Affects.ENGINE)
DOUBLE_TENSOR = FindingKind("double-tensor", Severity.HAZARD, Affects.ENGINE)

_EVERYWHERE = frozenset(
    {DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.INT8, DType.INT32, DType.INT64,
     DType.BOOL, DType.UINT8, DType.STRING, DType.UNDEFINED}
)  # fmt: skip
"""Types every TensorRT imports in some way; UINT8, FLOAT64 and STRING have checks of their own."""

_SINCE = {
    DType.BFLOAT16: (10, 0),
    DType.FLOAT8E4M3FN: (10, 0),
    DType.INT4: (10, 0),
    DType.FLOAT4E2M1: (10, 8),
}
"""First TensorRT release of trtdeploy's range with the type (onnx-tensorrt docs/operators.md)."""

_WIDER = {
    DType.UINT16: "INT32", DType.INT16: "INT32", DType.UINT32: "INT64", DType.UINT64: "INT64",
    DType.UINT4: "INT4", DType.UINT2: "INT4", DType.INT2: "INT4",
    DType.COMPLEX64: "a FLOAT tensor with a last axis of 2",
    DType.COMPLEX128: "a FLOAT tensor with a last axis of 2",
}  # fmt: skip


class FindEngineTypesCheck:
    """Find tensors of types TensorRT lacks (uint16, complex64...), and float64."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per constant, input, output and node that brings such a type in."""
        if not context.target.uses_tensorrt:
            return
        missing = frozenset(DType) - _types_of(context.target)
        engine = context.target.engine_title
        for source in find_type_sources(context, missing):
            yield UNSUPPORTED_TYPE.at(
                source.place or WHOLE_GRAPH,
                f"{source.role} {source.name!r} is {source.dtype.label}; {engine} has no such type",
                f"Cast it to {_WIDER.get(source.dtype, 'FLOAT')} when exporting.",
            )
        yield from _report_doubles(
            list(find_type_sources(context, frozenset({DType.FLOAT64}))), engine
        )


def _types_of(target: CheckTarget) -> frozenset[DType]:
    """Return the types the target imports; an unknown version counts as the newest."""
    version = target.version
    if target.backend == "tensorrt_rtx" or not version:
        return _EVERYWHERE | _SINCE.keys()
    return _EVERYWHERE | {dtype for dtype, since in _SINCE.items() if version >= since}


def _report_doubles(sources: list[TypeSource], engine: str) -> Iterator[Finding]:
    remedy = "Export in FLOAT; keep double precision for what runs outside the engine."
    inner = [source for source in sources if source.role in ("constant", "value")]
    for source in sources:
        if source not in inner:
            yield DOUBLE_TENSOR.at(
                source.place or WHOLE_GRAPH,
                f"{source.role} {source.name!r} is float64; {engine} narrows it to float32, so "
                "the engine's binding has another type than the model",
                remedy,
            )
    if inner:
        first = inner[0]
        yield DOUBLE_TENSOR.at(
            first.place or WHOLE_GRAPH,
            f"{len(inner)} constants or values inside are float64 (first: {first.name!r}); "
            f"{engine} narrows them to float32 and clamps what does not fit",
            remedy,
        )
