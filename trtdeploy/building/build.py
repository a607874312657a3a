"""Building from an ONNX file: load, check, type, compile, write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from trtdeploy.backends.installed import Environment, describe_environment
from trtdeploy.building.compiling import ENGINE_NAME, compile_folder
from trtdeploy.building.finishing import finish_folder
from trtdeploy.building.folder_check import is_intact
from trtdeploy.building.manifest import (
    BuiltFolder,
    DataRecord,
    Manifest,
    describe_file,
    load_manifest,
    read_clock,
)
from trtdeploy.building.output_folder import MANIFEST_NAME, check_replaceable, open_output_folder
from trtdeploy.building.parity_step import request_folder_parity
from trtdeploy.building.reproduce import render_reproduce_script
from trtdeploy.building.request import BuildRequest
from trtdeploy.building.result import ENGINE, PREPARED, BuildResult
from trtdeploy.building.target import CompileAbility, judge_ability
from trtdeploy.calibration.calibration_step import calibrate
from trtdeploy.calibration.document import CALIBRATION_NAME, save_statistics
from trtdeploy.calibration.quantization_report import describe_quantization
from trtdeploy.calibration.ranges import measure_ranges
from trtdeploy.calibration.summary import Calibration
from trtdeploy.config.loading import ResolvedProfile, load_deploy_profile
from trtdeploy.config.optimization_profile import resolve_shapes
from trtdeploy.core.errors import InputError, ModelFileError, UsageError
from trtdeploy.core.number_formats import INT8
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.steps import ProgressCallback, StepRunner, ignore_progress
from trtdeploy.graph.hashing import compute_build_key, hash_data, hash_model
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.model_inputs import describe_inputs
from trtdeploy.graph.saving import save_model
from trtdeploy.parity.request import ParityRequest, SessionOpener
from trtdeploy.parity.result import SkippedParity
from trtdeploy.precision.pins import refuse_pins
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.precision.typing_source import TypingSource
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget
from trtdeploy.preflight.text import describe_finding, summarize
from trtdeploy.report.document import SourceModel, TypedModelFile

MODEL_NAME = "model.onnx"
_NO_PARITY = "--no-parity was given"
_PARITY_SAMPLES = 8
"""Of the calibration samples; --data gives parity samples of its own, and all of them are run."""


@dataclass(frozen=True)
class _Inputs:
    """Everything that is known before anything is written."""

    request: BuildRequest
    resolved: ResolvedProfile
    options: TypingOptions
    model: OnnxModel
    source: SourceModel
    profiles: tuple[OptimizationProfile, ...]
    notes: tuple[str, ...]
    check: CheckReport
    environment: Environment

    @property
    def typing(self) -> TypingSource:
        """What ranges and amax are measured with."""
        return TypingSource(
            self.request, self.resolved.profile, self.options, self.model, self.profiles[0]
        )

    @cached_property
    def data(self) -> tuple[DataRecord, ...]:
        """Path and content hash of all sample inputs; read once, they may be gigabytes."""
        return tuple(DataRecord(str(path), hash_data(path)) for path in self.request.list_data())

    @cached_property
    def key(self) -> str:
        """Equal keys mean equal results."""
        return compute_build_key(
            {
                "source": self.source.sha256,
                "profile": replace(self.resolved, source=Path(), parents=()),
                "shapes": self.profiles,
                "pins": self.request.pins,
                "data": [entry.sha256 for entry in self.data],
                "has_parity_data": self.request.data is not None,
                "synthetic_calibration": self.request.synthetic_calibration,
                "environment": self.environment,
                "parity": self.request.check_parity,
            }
        )


def build_model(
    request: BuildRequest,
    progress: ProgressCallback = ignore_progress,
    open_engine: SessionOpener | None = None,
) -> BuildResult:
    """Build one ONNX model for one deploy profile.

    Args:
        request: What to build.
        progress: Called as steps start, go on and end.
        open_engine: Opens the finished engine for the parity step, where its GPU is; None
            emulates.

    Raises:
        TrtdeployError: See ``trtdeploy.core.errors``. Nothing has been written then, except
            ``<folder>.failed.log`` when the compiler failed.
    """
    resolved = load_deploy_profile(request.profile, request.overrides)
    options = TypingOptions.from_profile(resolved.profile, request.pins)
    refuse_pins(request.pins, resolved.device)
    target = request.output_dir or Path(f"{request.model.stem}.{resolved.name}")
    check_replaceable(target)
    steps = StepRunner(progress)
    with steps.run("load") as step:
        model = load_model(request.model)
        source = _describe_source(model)
        step.detail = f"opset {model.opset}, {len(model.graph.node)} nodes"
    ability = judge_ability(resolved, target, prepare_only=request.prepare_only)
    with steps.run("check") as step:
        resolution = resolve_shapes(
            describe_inputs(model), resolved.build_shape_requests(request.shapes)
        )
        check = check_model(
            model,
            target=CheckTarget.from_profile(resolved),
            optimization_profiles=resolution.optimization_profiles,
        )
        _require_buildable(model, check)
        profiles = resolution.require()
        step.detail = summarize(check)
    inputs = _Inputs(
        request, resolved, options, model, source, profiles, resolution.notes, check,
        describe_environment(),
    )  # fmt: skip
    if not request.rebuild:
        earlier = _find_earlier(target, inputs.key, ability)
        if earlier is not None:
            return earlier
        _refuse_engine_loss(target, ability)
    return _write_folder(target, inputs, ability, steps, open_engine)


def _describe_source(model: OnnxModel) -> SourceModel:
    return SourceModel(
        file=model.path.name,
        sha256=hash_model(model),
        opset=model.opset,
        ir_version=model.proto.ir_version,
        nodes=len(model.graph.node),
        inputs=describe_inputs(model),
        outputs=model.output_specs(),
    )


def _require_buildable(model: OnnxModel, check: CheckReport) -> None:
    if not check.blockers:
        return
    count = len(check.blockers)
    rows = "\n".join(f"  - {describe_finding(finding)}" for finding in check.blockers)
    raise ModelFileError(
        f"{model.path} cannot be built; {count} blocker{'s' if count > 1 else ''}:\n{rows}",
        hint=f"For hazards too: trtdeploy check {model.path} --profile NAME",
    )


def _find_earlier(target: Path, key: str, ability: CompileAbility) -> BuildResult | None:
    """Return the result that is already in the target folder, if it is this very build."""
    if not (target / MANIFEST_NAME).is_file():
        return None
    try:
        manifest = load_manifest(target)
    except InputError:
        return None  # written by another version: it will be replaced
    enough = manifest.status == ENGINE or not ability.possible
    if manifest.key != key or not enough or not is_intact(BuiltFolder(target, manifest)):
        return None
    if manifest.status == ENGINE:
        return BuildResult(target, manifest, reused=True)
    return BuildResult(target, manifest, True, ability.reason, ability.next_step)


def _refuse_engine_loss(target: Path, ability: CompileAbility) -> None:
    """Refuse to replace a finished folder by one without engine."""
    if ability.possible or not _holds_engine(target):
        return
    raise UsageError(
        f"{target} holds the engine of another build, and this one would leave none there: "
        f"{ability.reason}",
        hint="Choose another place with --output-dir, or add --rebuild to lose that engine.",
    )


def _holds_engine(target: Path) -> bool:
    if (target / ENGINE_NAME).exists():
        return True
    try:
        return load_manifest(target).status == ENGINE  # ONNX Runtime's is the typed model
    except InputError:
        return False


def _write_folder(
    target: Path,
    inputs: _Inputs,
    ability: CompileAbility,
    steps: StepRunner,
    open_engine: SessionOpener | None,
) -> BuildResult:
    with open_output_folder(target) as folder:
        calibration = calibrate(inputs.typing, inputs.source.sha256, steps)
        manifest = _prepare(folder, inputs, calibration, steps)
        if ability.possible:
            manifest = compile_folder(BuiltFolder(folder, manifest), target, steps)
        else:
            steps.skip("compile", ability.reason)
        manifest = replace(manifest, reproduce=_write_script(folder, inputs))
        request = None
        if inputs.request.check_parity:
            built = BuiltFolder(folder, manifest)
            request = request_folder_parity(built, inputs.model, open_engine)
            request = _give_samples(replace(request, is_ours=True), inputs)
        else:
            steps.skip("parity", _NO_PARITY)
            manifest = replace(manifest, parity=SkippedParity(_NO_PARITY))
        manifest = finish_folder(folder, manifest, request, steps)
    return BuildResult(target, manifest, False, ability.reason, ability.next_step)


def _give_samples(parity: ParityRequest, inputs: _Inputs) -> ParityRequest:
    """Return the check of samples of its own, else of some that were calibrated with.

    Quantized ranges are those of real inputs, so made-up ones would say little.
    """
    data, calibrated = inputs.request.data, inputs.request.calibration_samples
    if data is not None or not calibrated:
        return replace(parity, data=data)
    nonfinite = inputs.resolved.profile.calibration.nonfinite
    return replace(parity, data=calibrated[0], most_samples=_PARITY_SAMPLES, on_nonfinite=nonfinite)


def _write_script(folder: Path, inputs: _Inputs) -> str:
    """Write ``reproduce.sh``; return the command in it."""
    text = render_reproduce_script(
        inputs.request, inputs.source, inputs.profiles, inputs.environment
    )
    script = folder / "reproduce.sh"
    script.write_bytes(text.encode("utf-8", "surrogateescape"))  # file names may be any bytes
    script.chmod(0o755)
    return text.rstrip().splitlines()[-1].removesuffix(' "$@"')


def _prepare(
    folder: Path, inputs: _Inputs, calibration: Calibration | None, steps: StepRunner
) -> Manifest:
    """Write the typed model; return the manifest of a folder that is ready to be compiled."""
    with steps.run("type") as step:
        ranges = measure_ranges(inputs.typing)
        amax = None if calibration is None else calibration.amax
        typed = apply_recipe(inputs.model, replace(inputs.options, ranges=ranges, amax=amax))
        path = folder / MODEL_NAME
        save_model(typed.model, path)
        counts = typed.plan.count_by_dtype()
        step.detail = ", ".join(f"{n} nodes {dtype}" for dtype, n in sorted(counts.items()))
        step.log = list(typed.model.changes)
        quantization = describe_quantization(typed, inputs.profiles[0], calibration)
        if calibration is not None:
            save_statistics(
                calibration.statistics, folder / CALIBRATION_NAME, calibration.methods,
                inputs.options.recipe.quantized or INT8,
            )  # fmt: skip
    return Manifest(
        status=PREPARED,
        created=read_clock(),
        key=inputs.key,
        source=inputs.source,
        typed_model=_describe_typed_model(path, typed.model),
        engine=None,
        profile=inputs.resolved,
        pins=inputs.request.pins,
        data=inputs.data,
        optimization_profiles=inputs.profiles,
        shape_notes=inputs.notes,
        precision=typed.plan.summarize(ranges_measured=ranges is not None),
        quantization=quantization,
        check=inputs.check,
        compile=None,
        steps=(),
        environment=inputs.environment,
    )


def _describe_typed_model(path: Path, model: OnnxModel) -> TypedModelFile:
    data_file = path.with_name(path.name + ".data")
    return TypedModelFile(
        **vars(describe_file(path, *([data_file] if data_file.exists() else []))),
        opset=model.opset,
        ir_version=model.proto.ir_version,
        changes=tuple(model.changes),
    )
