"""The parity step of a build: measured where the device is, emulated elsewhere, never assumed."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from trtdeploy.backends.installed import is_installed
from trtdeploy.backends.local_gpu import find_local_gpu
from trtdeploy.config.loading import ResolvedProfile, restore_deploy_profile
from trtdeploy.core.errors import TrtdeployError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.parity.checking import ParityProgress
from trtdeploy.parity.result import Verdict
from trtdeploy.pipeline.build_key import hash_model
from trtdeploy.pipeline.gpu_model import explain_other_gpu
from trtdeploy.pipeline.output_folder import MANIFEST_NAME
from trtdeploy.pipeline.parity import describe_verdict, run_parity
from trtdeploy.pipeline.parity_request import ParityRequest, SessionOpener
from trtdeploy.pipeline.progress import ProgressEvent
from trtdeploy.pipeline.quantizing import find_thresholds
from trtdeploy.pipeline.result import ENGINE
from trtdeploy.pipeline.steps import StepRunner
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.report.json_document import dump_document

STEP = "parity"


def check_built_parity(request: ParityRequest, manifest: dict[str, Any], steps: StepRunner) -> None:
    """Run the check and enter its report into ``manifest``.

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
            manifest["parity"] = {"skipped": step.detail}
            return
        manifest["parity"] = dump_document(report)
        step.detail = describe_verdict(report)
        step.status = "failed" if report.verdict is Verdict.FAIL else "ok"


def skip_parity(reason: str, manifest: dict[str, Any], steps: StepRunner) -> None:
    """Say in manifest and steps that parity was not checked, and why."""
    manifest["parity"] = {"skipped": reason}
    steps.skip(STEP, reason)


def is_device_here(resolved: ResolvedProfile, manifest: dict[str, Any]) -> bool:
    """True when the engine can be run on this machine's own GPU, which is one it belongs to."""
    if manifest["status"] != ENGINE or resolved.profile.backend == "onnxruntime":
        return False
    has_memory = is_installed("cuda") or is_installed("pycuda")
    return has_memory and not explain_other_gpu(resolved, find_local_gpu())


def request_folder_parity(
    folder: Path,
    manifest: dict[str, Any],
    reference: OnnxModel,
    open_engine: SessionOpener | None,
) -> ParityRequest:
    """Return the check of an output folder, which has its profile and sizes.

    Args:
        folder: The folder.
        manifest: Of the folder.
        reference: The FP32 model.
        open_engine: Opens the engine where its GPU is; None always emulates.
    """
    resolved = restore_deploy_profile(manifest["profile"], str(folder / MANIFEST_NAME))
    request = ParityRequest.from_profile(
        reference,
        load_model(folder / manifest["typed_model"]["file"]),
        resolved.profile,
        TypingOptions.from_profile(
            resolved.profile,
            manifest.get("pins", []),
            find_thresholds(manifest.get("quantization")),
        ),
        tuple(OptimizationProfile.from_dict(entry) for entry in manifest["optimization_profiles"]),
    )
    if open_engine is None or not is_device_here(resolved, manifest):
        return request
    return replace(request, open_engine=partial(open_engine, folder))


def find_reference(folder: Path, manifest: dict[str, Any]) -> OnnxModel | None:
    """Return the very source model of a prepared folder, if it lies beside it, else None."""
    name = str(manifest["source"].get("file", ""))
    if not name or Path(name).name != name:
        return None
    beside = folder.resolve().parent / name
    if not beside.is_file():
        return None
    model = load_model(beside)
    return model if hash_model(model) == manifest["source"].get("sha256") else None
