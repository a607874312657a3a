"""The parity step of a build: measured on the device or emulated, never assumed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from trtdeploy.backends.cuda.local_gpu import find_local_gpu
from trtdeploy.backends.installed import is_installed
from trtdeploy.building.manifest import BuiltFolder
from trtdeploy.building.output_folder import MANIFEST_NAME
from trtdeploy.building.result import ENGINE
from trtdeploy.building.target import explain_other_gpu
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.core.errors import TrtdeployError
from trtdeploy.core.steps import ProgressEvent, StepRunner
from trtdeploy.graph.hashing import hash_model
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.checking import ParityProgress
from trtdeploy.parity.request import ParityRequest, SessionOpener
from trtdeploy.parity.result import ParityReport, SkippedParity, Verdict
from trtdeploy.parity.running import describe_verdict, run_parity
from trtdeploy.precision.typing_options import TypingOptions

STEP = "parity"


def check_built_parity(request: ParityRequest, steps: StepRunner) -> ParityReport | SkippedParity:
    """Run the check and return its report.

    A check that cannot be run is entered as such and fails the gate: it is never a silent pass.
    """
    started = time.perf_counter()

    def observe(progress: ParityProgress) -> None:
        detail = f"{progress.point.name} ({progress.position} of {progress.total})"
        steps.progress(ProgressEvent(STEP, detail, time.perf_counter() - started))

    with steps.run(STEP) as step:
        try:
            report = run_parity(request, observe)
        except TrtdeployError as error:
            step.status, step.detail = "failed", f"could not be run: {error}"
            return SkippedParity(skipped=step.detail)
        step.detail = describe_verdict(report)
        step.status = "failed" if report.verdict is Verdict.FAIL else "ok"
    return report


def is_device_here(resolved: ResolvedProfile, status: str) -> bool:
    """True when the engine can be run on this machine's own GPU, which is one it belongs to."""
    if status != ENGINE or resolved.profile.backend == "onnxruntime":
        return False
    has_memory = is_installed("cuda") or is_installed("pycuda")
    return has_memory and not explain_other_gpu(resolved, find_local_gpu())


def request_folder_parity(
    built: BuiltFolder, reference: OnnxModel, open_engine: SessionOpener | None
) -> ParityRequest:
    """Return the check of an output folder, which has its profile and sizes.

    Args:
        built: Has profile, sizes and typed model.
        reference: The FP32 model.
        open_engine: Opens the engine where its GPU is; None always emulates.
    """
    manifest = built.manifest
    manifest.profile.require_sound(str(built.path / MANIFEST_NAME))
    profile = manifest.profile.profile
    request = ParityRequest.from_profile(
        reference,
        load_model(built.path / manifest.typed_model.file),
        profile,
        TypingOptions.from_profile(profile, manifest.pins, manifest.amax),
        manifest.optimization_profiles,
    )
    if open_engine is None or not is_device_here(manifest.profile, manifest.status):
        return request
    return replace(request, open_engine=partial(open_engine, built.path))


def find_reference(built: BuiltFolder) -> OnnxModel | None:
    """Return the very source model of a prepared folder, if it lies beside it, else None."""
    name = built.manifest.source.file
    if not name or Path(name).name != name:
        return None
    beside = built.path.resolve().parent / name
    if not beside.is_file():
        return None
    model = load_model(beside)
    return model if hash_model(model) == built.manifest.source.sha256 else None
