"""FindVersionsCheck: files newer or older than what shall read them."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
from onnx import ModelProto, defs

from trtdeploy.graph.model import ONNX_DOMAINS, walk_nodes
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)

OPSET_TOO_NEW = FindingKind("opset-too-new", Severity.BLOCKER, Affects.BASELINE)
IR_TOO_NEW = FindingKind("ir-too-new", Severity.BLOCKER, Affects.BASELINE)
OPSET_ABOVE_TARGET = FindingKind("opset-above-target", Severity.HAZARD, Affects.ENGINE)
OPSET_TOO_OLD = FindingKind("opset-too-old", Severity.HAZARD, Affects.BASELINE)
OPSET_NOT_NAMED = FindingKind("opset-not-named", Severity.HAZARD, Affects.BOTH)


class FindVersionsCheck:
    """Compare operator set and file format with what the baseline and the engine read.

    The baseline refuses to load what is newer than itself. A TensorRT parser does not: it reads a
    newer operator set and may misunderstand it, hence only a hazard.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield findings about the whole file."""
        yield from _check_baseline(context)
        yield from _check_target(context)
        if not _names_standard_opset(context.model.proto):
            yield OPSET_NOT_NAMED.at(
                WHOLE_GRAPH,
                "the file names no operator set for its standard operators; each reader guesses",
                "Export the model again, or set opset_import.",
            )


def _check_baseline(context: CheckContext) -> Iterator[Finding]:
    opset, ir_version = context.model.opset, context.model.proto.ir_version
    max_opset = min(context.baseline.max_opset, defs.onnx_opset_version())
    max_ir = min(context.baseline.max_ir, int(onnx.IR_VERSION))
    reader = f"{context.baseline.title} with onnx {onnx.__version__}"
    if opset > max_opset:
        yield OPSET_TOO_NEW.at(
            WHOLE_GRAPH,
            f"the file uses opset {opset}; {reader} reads up to {max_opset} and cannot load it",
            f"Export the model with opset {max_opset} or older.",
        )
    if ir_version > max_ir:
        yield IR_TOO_NEW.at(
            WHOLE_GRAPH,
            f"the file has IR version {ir_version}; {reader} reads up to {max_ir} and cannot "
            "load it",
            "Export the model with an older onnx package, or install newer ones here.",
        )
    if opset < context.baseline.min_opset and _names_standard_opset(context.model.proto):
        yield OPSET_TOO_OLD.at(
            WHOLE_GRAPH,
            f"the file uses opset {opset}; {context.baseline.title} implements operators from "
            f"opset {context.baseline.min_opset} on",
            "Export the model with a current exporter (opset 17 suits every target).",
        )


def _check_target(context: CheckContext) -> Iterator[Finding]:
    if not context.target.uses_tensorrt:
        return
    opset = context.model.opset
    limit = context.target.max_opset or context.table.max_opset
    if limit is not None and opset > limit:
        yield OPSET_ABOVE_TARGET.at(
            WHOLE_GRAPH,
            f"the file uses opset {opset}; {context.target.engine_title} documents up to {limit}, "
            "and its parser may misread newer operators without a word",
            f"Export the model with opset {limit}.",
        )
    if opset < context.table.min_opset and _names_standard_opset(context.model.proto):
        yield OPSET_TOO_OLD.at(
            WHOLE_GRAPH,
            f"the file uses opset {opset}; {context.target.engine_title} documents operators "
            f"from opset {context.table.min_opset} on",
            "Export the model with a current exporter (opset 17 suits every target).",
            affects=Affects.ENGINE,
        )


def _names_standard_opset(proto: ModelProto) -> bool:
    if any(entry.domain in ONNX_DOMAINS for entry in proto.opset_import):
        return True
    return not any(node.domain in ONNX_DOMAINS for node in walk_nodes(proto.graph))
