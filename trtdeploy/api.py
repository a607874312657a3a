"""The public Python API; the command line calls these very functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtdeploy.building.build import build_model
from trtdeploy.building.check_command import check_for_profile
from trtdeploy.building.parity_command import request_parity as read_parity_request
from trtdeploy.building.prepared import build_prepared
from trtdeploy.building.request import BuildRequest
from trtdeploy.building.result import BuildResult
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.steps import ProgressCallback, ignore_progress
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.inspection.inspecting import inspect_path, refuse_engine
from trtdeploy.parity.checking import Observer
from trtdeploy.parity.request import ParityRequest
from trtdeploy.parity.result import ParityReport
from trtdeploy.parity.running import run_parity
from trtdeploy.pinning.finding import find_pins as search_pins
from trtdeploy.pinning.report import PinningReport
from trtdeploy.pinning.request import PinRequest
from trtdeploy.preflight.report import CheckReport
from trtdeploy.runtime.options import SessionOptions

if TYPE_CHECKING:
    from trtdeploy.backends.session import Session


def build(
    model: str | Path | BuildRequest,
    profile: str = "",
    *,
    output_dir: str | Path | None = None,
    overrides: Sequence[str] = (),
    pins: Sequence[str] = (),
    progress: ProgressCallback = ignore_progress,
) -> BuildResult:
    """Build an engine, or the folder a device can build it from.

    Args:
        model: An ONNX file, a prepared output folder, or a ``BuildRequest`` that holds
            everything (sizes, sample data); then the other arguments stay empty.
        profile: Name or path of a deploy profile; empty for a prepared folder.
        output_dir: Where the result goes; None makes ``<model>.<profile>`` here.
        overrides: Texts like ``build.workspace=2GiB``.
        pins: Patterns of node names, or ``op:Softmax``, to keep in FP32.
        progress: Called as steps start, go on and end.

    Returns:
        The output folder. ``status`` is ``prepared``, and ``engine_path`` None, when only the
        device itself can compile.

    Raises:
        TrtdeployError: With ``hint`` and ``exit_code``; nothing is half-written.
    """
    request = model if isinstance(model, BuildRequest) else BuildRequest(
        model=Path(model),
        profile=profile,
        overrides=tuple(overrides),
        output_dir=None if output_dir is None else Path(output_dir),
        pins=(pins,) if isinstance(pins, str) else tuple(pins),
    )  # fmt: skip
    refuse_engine(request.model)
    run = build_prepared if request.model.is_dir() else build_model
    return run(request, progress, load)


def export_onnx(
    source: str | ExportRequest,
    output: str | Path = "model.onnx",
    *,
    profile: str = "",
    weights: str | Path | None = None,
    progress: ProgressCallback = ignore_progress,
) -> ExportResult:
    """Export a trained model to an ONNX file that is proven against it.

    Args:
        source: ``torchvision:resnet50``, ``module:callable``, ``yolov8n.pt``, ``model.onnx``, or an
            ``ExportRequest`` that holds everything; then the other arguments stay empty.
        output: The file to write.
        profile: Name or path of the deploy profile the file is for; decides the opset.
        weights: Trained weights for sources that carry none.
        progress: Called as steps start and end.

    Raises:
        TrtdeployError: With ``hint`` and ``exit_code``; nothing is written then.
    """
    request = source if isinstance(source, ExportRequest) else ExportRequest(
        source=source,
        output=Path(output),
        profile=profile,
        weights=None if weights is None else Path(weights),
    )  # fmt: skip
    return export_model(request, progress)


def check(
    model: str | Path,
    profile: str,
    *,
    overrides: Sequence[str] = (),
    shapes: ShapeTable | None = None,
    ask_parser: bool = True,
) -> CheckReport:
    """Find every blocker and hazard of a model for a deploy profile; nothing is built.

    Args:
        model: An ONNX file.
        profile: Name or path of a deploy profile.
        overrides: Texts like ``recipe=bf16``.
        shapes: Sizes, as ``parse_shape_table`` makes them from command-line texts.
        ask_parser: Ask the installed TensorRT parser too, when there is one.

    Raises:
        TrtdeployError: The model or the profile cannot be read at all.
    """
    refuse_engine(Path(model))
    return check_for_profile(Path(model), profile, overrides, shapes, ask_parser=ask_parser)


def request_parity(
    candidate: str | Path,
    reference: str | Path,
    *,
    profile: str = "",
    overrides: Sequence[str] = (),
    shapes: ShapeTable | None = None,
) -> ParityRequest:
    """Return everything that ``check_parity`` does; ``dataclasses.replace`` changes it.

    E.g. ``replace(request_parity(folder, "net.onnx"), data=Path("val.npz"), metric="top1")``.

    Args:
        candidate: An output folder, or a typed ONNX file.
        reference: The FP32 ONNX model.
        profile: Deploy profile for a bare ONNX file; a folder has its own.
        overrides: Texts like ``parity.atol=1e-3`` for it.
        shapes: Sizes for a bare ONNX file.

    Raises:
        TrtdeployError: A file cannot be used, or the arguments make no sense.
    """
    refuse_engine(Path(candidate))
    refuse_engine(Path(reference))
    return read_parity_request(Path(candidate), Path(reference), profile, overrides, shapes, load)


def check_parity(
    candidate: str | Path | ParityRequest,
    reference: str | Path = "",
    *,
    profile: str = "",
    data: str | Path | None = None,
    progress: Observer | None = None,
) -> ParityReport:
    """Compare a candidate with its FP32 model at every point of the optimization profiles.

    Args:
        candidate: An output folder, a typed ONNX file, or a ``ParityRequest`` that holds
            everything; then the other arguments stay empty.
        reference: The FP32 ONNX model.
        profile: Deploy profile for a bare ONNX file.
        data: Samples; None makes them up, and the report says so.
        progress: Told where the check is.

    Returns:
        The report; ``verdict`` is the gate's answer, ``label`` says emulated or measured.

    Raises:
        TrtdeployError: A file cannot be used. Differences are in the report, not raised.
    """
    if isinstance(candidate, ParityRequest):
        return run_parity(candidate, progress)
    request = request_parity(candidate, reference, profile=profile)
    return run_parity(replace(request, data=None if data is None else Path(data)), progress)


def find_pins(
    model: str | Path | PinRequest,
    profile: str = "",
    *,
    calibration_data: str | Path | None = None,
    data: str | Path | None = None,
    target: str = "",
    progress: ProgressCallback = ignore_progress,
) -> PinningReport:
    """Find the nodes that break a deploy profile's precision, and the fewest to pin.

    Args:
        model: An FP32 ONNX file, or a ``PinRequest`` that holds everything; then the other
            arguments stay empty.
        profile: Name or path of a deploy profile.
        calibration_data: Samples that a quantizing recipe is calibrated with.
        data: Samples to compare outputs on.
        target: E.g. ``sqnr=30`` or ``max=1%``; empty for the recipe's parity tolerance.
        progress: Told before each run.

    Raises:
        TrtdeployError: A file cannot be used. A target that no set reaches is in the report.
    """
    request = model if isinstance(model, PinRequest) else PinRequest(
        model=Path(model),
        profile=profile,
        data=None if data is None else Path(data),
        calibration_data=() if calibration_data is None else (Path(calibration_data),),
        target=target,
    )  # fmt: skip
    refuse_engine(request.model)
    return search_pins(request, progress)


def inspect(path: str | Path) -> dict[str, Any]:
    """Return facts about an ONNX file, an engine or an output folder; ``kind`` says which.

    Raises:
        InputError: It is none of these.
    """
    return inspect_path(Path(path))


def load(
    path: str | Path,
    *,
    allow_host_code: bool = False,
    allow_bare_engine: bool = False,
    options: SessionOptions | None = None,
) -> Session:
    """Load a model for running: an output folder, an ONNX file, or an engine.

    A folder is run by the backend its manifest names, and only if its files are the ones the
    manifest describes and this machine is one they were made for. An ONNX file is run as it is by
    ONNX Runtime on the CPU. Threads may share a session; see the class of each backend for whether
    their calls run at the same time.

    Args:
        path: What to load; nothing is written there.
        allow_host_code: An engine may execute code of its own on the CPU. Version-compatible
            engines with a lean runtime inside need it; give it only for files you would run as a
            program.
        allow_bare_engine: Load an engine without a manifest. Only its header is checked.
        options: Settings of the session; None takes the defaults.

    Returns:
        An open session; use it as a context manager.

    Raises:
        TrtdeployError: With ``hint`` and ``exit_code``, before the engine is deserialised.
    """
    from trtdeploy.runtime.loading import LoadRequest, load_session  # builds do without it

    return load_session(
        LoadRequest(
            path=Path(path),
            allow_host_code=allow_host_code,
            allow_bare_engine=allow_bare_engine,
            options=options or SessionOptions(),
        )
    )
