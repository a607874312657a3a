"""The pre-flight as a command of its own: sizes, static checks, the installed parser."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trtdeploy.backends.compiler.compile_process import ask_installed_parser
from trtdeploy.backends.compiler.compile_request import (
    TENSORRT,
    TENSORRT_RTX,
    CompileRequest,
    EngineSpec,
)
from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.backends.installed import is_installed
from trtdeploy.calibration.calibration_step import assume_amax
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_shapes
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.errors import MissingDependencyError, ModelFileError, NotPossibleError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.model_inputs import describe_inputs
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.audit.auditing import audit_quantization
from trtdeploy.precision.typed_model import TypedModel, apply_recipe
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.preflight.checking import add_size_findings, check_model
from trtdeploy.preflight.checks.quantization_audit import make_audit_finding
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget

_INVALID = frozenset(
    {"invalid-node", "invalid-graph", "undefined-value", "duplicate-value", "damaged-constant",
     "opset-too-new", "ir-too-new", "opset-not-named"}
)  # fmt: skip


def check_for_profile(
    path: Path,
    profile: str,
    overrides: Sequence[str],
    shapes: ShapeTable | None,
    *,
    ask_parser: bool,
) -> CheckReport:
    """Check one model for one deploy profile.

    Raises:
        TrtdeployError: The model or the profile cannot be read.
    """
    resolved = load_deploy_profile(profile, overrides)
    target = CheckTarget.from_profile(resolved)
    model = load_model(path)
    try:
        inputs = describe_inputs(model)
    except ModelFileError:
        report = check_model(model, target=target)
        if not report.blockers:
            raise
        return report  # with every such node, not only the first
    resolution = resolve_shapes(inputs, resolved.build_shape_requests(shapes))
    profiles = resolution.optimization_profiles
    report = check_model(model, target=target, optimization_profiles=profiles)
    # an invalid graph must not reach the opset converter, which crashes on some
    is_invalid = any(finding.code in _INVALID for finding in report.blockers)
    options = TypingOptions.from_profile(resolved.profile)
    quantizes = options.recipe.quantized is not None
    if is_invalid or not (ask_parser or quantizes):
        return add_size_findings(report, resolution)
    try:
        # amax is assumed: only the structure shows
        typed = apply_recipe(model, assume_amax(model, options))
    except ModelFileError:
        return add_size_findings(report, resolution)  # too new; the static checks say so
    parser = _ask(typed.model, resolved.profile.backend) if ask_parser else None
    if parser is not None:
        report = check_model(model, target=target, optimization_profiles=profiles, parser=parser)
    return _add_audit(add_size_findings(report, resolution), typed, profiles)


def _add_audit(
    report: CheckReport, typed: TypedModel, profiles: Sequence[OptimizationProfile]
) -> CheckReport:
    """Return the report with what quantizing this model will come to, if that is the recipe."""
    if typed.quantization is None or typed.quantization.is_empty:
        return report  # a model with Q/DQ pairs of its own has its audit already
    sizes = profiles[0].opt_shapes if profiles else {}
    finding = make_audit_finding(audit_quantization(typed.model, sizes))
    return replace(report, findings=(*report.findings, finding))


def _ask(typed: OnnxModel, backend: str) -> ParserAnswer | None:
    """Parse the typed model with the TensorRT that is here; None when there is none to ask."""
    if backend not in (TENSORRT, TENSORRT_RTX) or not is_installed(backend):
        return None
    with tempfile.TemporaryDirectory() as folder:
        typed_path = Path(folder) / "model.onnx"
        save_model(typed, typed_path)
        operators = tuple(sorted({node.op_type for node in walk_nodes(typed.graph)}))
        request = CompileRequest(
            spec=EngineSpec(backend),
            options=BuildSection(),
            model_path=str(typed_path),
            parse_only=True,
            operators=operators,
        )
        try:
            return ask_installed_parser(request)
        except (MissingDependencyError, NotPossibleError):
            return None  # installed, and does not start here: the shipped table answers
