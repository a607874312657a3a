"""The whole check: one call, every finding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.config.optimization_profile import ShapeResolution
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.model import OnnxModel
from trtdeploy.preflight.checks.border_values import FindBorderValuesCheck
from trtdeploy.preflight.checks.data_dependent_shapes import FindDataDependentShapesCheck
from trtdeploy.preflight.checks.declared_outputs import FindDeclaredOutputsCheck
from trtdeploy.preflight.checks.engine_operators import FindEngineOperatorsCheck
from trtdeploy.preflight.checks.engine_types import FindEngineTypesCheck
from trtdeploy.preflight.checks.fixed_batch import FindFixedBatchCheck
from trtdeploy.preflight.checks.fixed_reshapes import FindFixedReshapesCheck
from trtdeploy.preflight.checks.invalid_nodes import FindInvalidNodesCheck
from trtdeploy.preflight.checks.narrow_source import FindNarrowSourceCheck
from trtdeploy.preflight.checks.node_names import FindNodeNamesCheck
from trtdeploy.preflight.checks.parser_errors import FindParserErrorsCheck
from trtdeploy.preflight.checks.profile_inputs import FindProfileInputsCheck
from trtdeploy.preflight.checks.profile_shapes import FindProfileShapesCheck
from trtdeploy.preflight.checks.quantization import FindQuantizationCheck
from trtdeploy.preflight.checks.quantization_audit import FindQuantizationAuditCheck
from trtdeploy.preflight.checks.quantization_pairs import FindQuantizationPairsCheck
from trtdeploy.preflight.checks.quantization_scales import FindQuantizationScalesCheck
from trtdeploy.preflight.checks.quantized_operands import FindQuantizedOperandsCheck
from trtdeploy.preflight.checks.random_nodes import FindRandomNodesCheck
from trtdeploy.preflight.checks.restrictions import FindRestrictionsCheck
from trtdeploy.preflight.checks.shape_conflicts import FindShapeConflictsCheck
from trtdeploy.preflight.checks.shape_inputs import FindShapeInputsCheck
from trtdeploy.preflight.checks.strings import FindStringsCheck
from trtdeploy.preflight.checks.training_mode import FindTrainingModeCheck
from trtdeploy.preflight.checks.type_rules import FindTypeRulesCheck
from trtdeploy.preflight.checks.uint8_inside import FindUint8InsideCheck
from trtdeploy.preflight.checks.unknown_operators import FindUnknownOperatorsCheck
from trtdeploy.preflight.checks.versions import FindVersionsCheck
from trtdeploy.preflight.checks.wiring import FindWiringCheck
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import (
    WHOLE_GRAPH,
    Affects,
    Finding,
    FindingKind,
    Severity,
)
from trtdeploy.preflight.merging import merge_findings
from trtdeploy.preflight.prepared_model import prepare_model
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget

_WRONG_SIZE = FindingKind("size-does-not-fit", Severity.BLOCKER, Affects.ENGINE)
_ASSUMED_SIZE = FindingKind("size-assumed", Severity.NOTE, Affects.ENGINE)
_SIZE_REMEDY = "give it with --shape, --symbol, --value, or 'shapes:' in the profile"


class PreflightCheck(Protocol):
    """Looks for one kind of problem. A check reads the context and changes nothing."""

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield what is wrong, in graph order."""
        ...


ALL_CHECKS: tuple[PreflightCheck, ...] = (
    FindVersionsCheck(),
    FindUnknownOperatorsCheck(),
    FindInvalidNodesCheck(),
    FindWiringCheck(),
    FindNodeNamesCheck(),
    FindEngineOperatorsCheck(),
    FindRestrictionsCheck(),
    FindTypeRulesCheck(),
    FindStringsCheck(),
    FindUint8InsideCheck(),
    FindEngineTypesCheck(),
    FindQuantizationCheck(),
    FindQuantizationScalesCheck(),
    FindQuantizedOperandsCheck(),
    FindQuantizationPairsCheck(),
    FindQuantizationAuditCheck(),
    FindTrainingModeCheck(),
    FindNarrowSourceCheck(),
    FindRandomNodesCheck(),
    FindShapeConflictsCheck(),
    FindFixedReshapesCheck(),
    FindFixedBatchCheck(),
    FindDeclaredOutputsCheck(),
    FindDataDependentShapesCheck(),
    FindProfileInputsCheck(),
    FindProfileShapesCheck(),
    FindBorderValuesCheck(),
    FindShapeInputsCheck(),
    FindParserErrorsCheck(),
)
"""Every check, in the order their findings appear within one severity."""


def check_model(
    model: OnnxModel,
    *,
    target: CheckTarget,
    optimization_profiles: Sequence[OptimizationProfile] = (),
    parser: ParserAnswer | None = None,
) -> CheckReport:
    """Find everything that stops a model from being deployed, or makes that risky.

    Nothing is built, run or changed, and large weights are not read.

    Args:
        model: The model as loaded, before any rewriting.
        target: The engine it is meant for.
        optimization_profiles: Shapes the engine shall accept, each tried at min, opt and max.
        parser: What the parser of ``target`` answered; None to rely on the shipped tables.

    Returns:
        All findings. A broken model gives blockers, never an exception.
    """
    context = CheckContext(
        model, prepare_model(model), target, tuple(optimization_profiles), parser
    )
    findings = [finding for check in ALL_CHECKS for finding in check.find(context)]
    return CheckReport(
        model=str(model.path),
        opset=model.opset,
        ir_version=model.proto.ir_version,
        node_count=len(context.prepared.nodes),
        backend=target.backend,
        engine=target.engine_title,
        recipe=target.recipe.name,
        device=target.device_title,
        asked=context.asked,
        findings=merge_findings(findings, target),
    )


def add_size_findings(report: CheckReport, resolution: ShapeResolution) -> CheckReport:
    """Return the report with problems of the sizes in front and assumed sizes at the end."""
    wrong = [_WRONG_SIZE.at(WHOLE_GRAPH, str(p), _SIZE_REMEDY) for p in resolution.problems]
    assumed = [_ASSUMED_SIZE.at(WHOLE_GRAPH, note, _SIZE_REMEDY) for note in resolution.notes]
    return replace(report, findings=(*wrong, *report.findings, *assumed))
