"""The check step: the pre-flight for one deploy profile, sizes included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.backends.installed import find_installed
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.config.optimization_profile import ShapeResolution
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.model import OnnxModel
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import WHOLE_GRAPH, Affects, FindingKind, Severity
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget

_WRONG_SIZE = FindingKind("size-does-not-fit", Severity.BLOCKER, Affects.ENGINE)
_ASSUMED_SIZE = FindingKind("size-assumed", Severity.NOTE, Affects.ENGINE)
_SIZE_REMEDY = "give it with --shape, --symbol, --value, or 'shapes:' in the profile"


def run_preflight(
    model: OnnxModel,
    resolved: ResolvedProfile,
    optimization_profiles: Sequence[OptimizationProfile],
    parser: ParserAnswer | None = None,
) -> CheckReport:
    """Check ``model`` for what ``resolved`` wants to make of it."""
    target = CheckTarget(
        backend=resolved.profile.backend,
        tensorrt_version=_find_version(resolved),
        recipe=find_recipe(resolved.profile.recipe),
        device_title=resolved.device.title,
    )
    return check_model(
        model, target=target, optimization_profiles=optimization_profiles, parser=parser
    )


def add_size_findings(report: CheckReport, resolution: ShapeResolution) -> CheckReport:
    """Return the report with problems of the sizes in front and assumed sizes at the end."""
    wrong = [_WRONG_SIZE.at(WHOLE_GRAPH, str(p), _SIZE_REMEDY) for p in resolution.problems]
    assumed = [_ASSUMED_SIZE.at(WHOLE_GRAPH, note, _SIZE_REMEDY) for note in resolution.notes]
    return replace(report, findings=(*wrong, *report.findings, *assumed))


def summarize(report: CheckReport) -> str:
    """Return e.g. ``no blockers, 2 hazards, 1 note``."""
    parts = []
    for severity, count in report.counts.items():
        if count or severity == Severity.BLOCKER.value:
            parts.append(f"{count or 'no'} {severity}{'' if count == 1 else 's'}")
    return ", ".join(parts)


def _find_version(resolved: ResolvedProfile) -> str | None:
    """Return the TensorRT that will compile, as far as that is known here."""
    if resolved.profile.backend == "onnxruntime":
        return None
    installed = find_installed(resolved.profile.backend).version
    if resolved.profile.backend != "tensorrt" or installed:
        return installed
    # the oldest TensorRT 10 a JetPack ships: what it takes, the newer ones take too
    return next((v for v in resolved.device.jetpack.values() if v.startswith("10.")), None)
