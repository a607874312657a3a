"""The parity check as a command of its own: of an output folder, or of any typed ONNX file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from trtdeploy.config.loading import ResolvedProfile, load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_optimization_profiles
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.errors import UsageError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.loading import load_model
from trtdeploy.parity.checking import Observer
from trtdeploy.parity.result import ParityReport
from trtdeploy.pipeline.manifest import load_manifest
from trtdeploy.pipeline.model_inputs import describe_inputs
from trtdeploy.pipeline.parity import run_parity
from trtdeploy.pipeline.parity_request import JudgementOptions, ParityRequest, SessionOpener
from trtdeploy.pipeline.parity_step import is_device_here


@dataclass(frozen=True)
class ParityQuestion:
    """What ``trtdeploy parity`` is asked.

    Attributes:
        candidate: An output folder, or a typed ONNX file.
        reference: The FP32 model.
        profile: Deploy profile for a bare ONNX file; a folder has its own.
        overrides: ``--set`` texts for it.
        shapes: Sizes for a bare ONNX file.
        data: Samples; None makes them up.
        match_rows: Rows of the outputs have no fixed order.
        metric: Task metric; empty for none.
        max_drop: How far it may fall.
    """

    candidate: Path
    reference: Path
    profile: str = ""
    overrides: tuple[str, ...] = ()
    shapes: ShapeTable = field(default_factory=ShapeTable)
    data: Path | None = None
    match_rows: bool = False
    metric: str = ""
    max_drop: float = 0.0


def answer_parity(
    question: ParityQuestion,
    progress: Observer | None = None,
    open_engine: SessionOpener | None = None,
) -> ParityReport:
    """Run the check; see ``ParityQuestion``.

    Args:
        question: What to compare.
        progress: Told where the check is.
        open_engine: Opens the engine of a folder where its GPU is; None always emulates.

    Raises:
        TrtdeployError: A file cannot be used, or the arguments make no sense.
    """
    if question.candidate.is_dir():
        return run_parity(_read_folder(question, open_engine), progress)
    if not question.profile:
        raise UsageError(
            f"{question.candidate} is a bare model: which recipe and sizes is it for?",
            hint="Add --profile NAME, e.g. --profile rtx4090-fp16, or give an output folder.",
        )
    resolved = load_deploy_profile(question.profile, question.overrides)
    inputs = describe_inputs(load_model(question.reference))
    profiles = resolve_optimization_profiles(inputs, resolved.build_shape_requests(question.shapes))
    return run_parity(_make_request(question, question.candidate, resolved, profiles), progress)


def _read_folder(question: ParityQuestion, open_engine: SessionOpener | None) -> ParityRequest:
    given = {"--profile": question.profile, "--set": question.overrides}
    used = [name for name, value in given.items() if value]
    if used or question.shapes != ShapeTable():
        raise UsageError(
            f"{question.candidate} is an output folder, which has its profile and sizes already",
            hint="Leave --profile, --set and the sizes out, or give the ONNX file in it.",
        )
    manifest = load_manifest(question.candidate)
    manifest.profile.require_sound(str(question.candidate / "manifest.json"))
    request = _make_request(
        question,
        question.candidate / manifest.typed_model.file,
        manifest.profile,
        manifest.optimization_profiles,
        pins=manifest.pins,
    )
    request = replace(request, thresholds=manifest.thresholds)
    if open_engine is None or not is_device_here(manifest.profile, manifest.status):
        return request
    return replace(request, engine_folder=question.candidate, open_engine=open_engine)


def _make_request(
    question: ParityQuestion,
    candidate: Path,
    resolved: ResolvedProfile,
    profiles: tuple[OptimizationProfile, ...],
    pins: tuple[str, ...] = (),
) -> ParityRequest:
    profile = resolved.profile
    return ParityRequest(
        reference=question.reference,
        candidate=candidate,
        recipe=profile.recipe,
        optimization_profiles=profiles,
        pins=(*profile.precision.list_pins(), *pins),
        is_weak=profile.typing == "weak",
        keep_io=profile.precision.io == "keep",
        data=question.data,
        preprocessing=profile.preprocessing,
        judgement=JudgementOptions(
            atol=profile.parity.atol,
            rtol=profile.parity.rtol,
            match_rows=question.match_rows,
            metric=question.metric,
            max_drop=question.max_drop,
        ),
    )
