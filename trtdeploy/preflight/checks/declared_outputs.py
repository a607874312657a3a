"""FindDeclaredOutputsCheck: outputs that the file declares otherwise than it computes them."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Shape, TensorSpec
from trtdeploy.graph.shape_inference import Dims
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Place,
    Severity,
)
from trtdeploy.preflight.text import format_dims

DECLARED_SHAPE_DIFFERS = FindingKind("declared-shape-differs", Severity.HAZARD, Affects.BASELINE)
DECLARED_TYPE_DIFFERS = FindingKind("declared-type-differs", Severity.BLOCKER, Affects.BASELINE)


class FindDeclaredOutputsCheck:
    """Compare declared outputs with what shape inference finds.

    A wrong shape makes ONNX Runtime warn on every run and misleads whoever allocates buffers; a
    wrong element type makes it refuse the file.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per output."""
        for spec in context.model.output_specs():
            place = _place_of_producer(context, spec.name)
            code = context.symbolic.types.get(spec.name, 0)
            computed_type = DType.from_onnx(code)
            if DType.UNDEFINED not in (computed_type, spec.dtype) and computed_type != spec.dtype:
                yield DECLARED_TYPE_DIFFERS.at(
                    place,
                    f"the output {spec.name!r} is declared {spec.dtype.label} and computed as "
                    f"{computed_type.label}; ONNX Runtime refuses the file",
                    f"Declare it as {computed_type.label}, or append a Cast.",
                )
            yield from _compare_shapes(spec, context.symbolic.shape_of(spec.name), place)


def _compare_shapes(spec: TensorSpec, computed: Dims | None, place: Place) -> Iterator[Finding]:
    if spec.shape is None or computed is None:
        return
    if len(spec.shape) != len(computed):
        difference = f"differ in rank ({len(computed)} and {len(spec.shape)})"
    else:
        axes = _differing_axes(spec.shape, computed)
        if not axes:
            return
        difference = f"differ in axis {', '.join(map(str, axes))}"
    yield DECLARED_SHAPE_DIFFERS.at(
        place,
        f"the output {spec.name!r} is declared {format_dims(spec.shape)} and computed as "
        f"{format_dims(computed)}: inferred shape and existing shape {difference}",
        "Trust the computed shape, and correct the declaration when exporting: it may be a sign "
        "that the graph does something else than intended.",
    )


def _differing_axes(declared: Shape, computed: Dims) -> list[int]:
    return [
        axis
        for axis, (left, right) in enumerate(zip(declared, computed, strict=True))
        if isinstance(left, int) and isinstance(right, int) and left != right
    ]


def _place_of_producer(context: CheckContext, name: str) -> Place:
    node = context.prepared.index.main.producers.get(name)
    return context.place_of(node) if node is not None else WHOLE_GRAPH
