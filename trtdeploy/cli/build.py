"""``trtdeploy build``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink

if TYPE_CHECKING:
    from trtdeploy.building.result import BuildResult
    from trtdeploy.core.errors import TrtdeployError


def build(
    model: options.BuildInput,
    profile: options.Profile = "",
    output_dir: options.OutputDir = None,
    overrides: options.Overrides = None,
    shapes: options.Shapes = None,
    symbols: options.Symbols = None,
    values: options.Values = None,
    shape_json: options.ShapeJson = None,
    pins: options.Pins = None,
    data: options.RangeData = None,
    calibration_data: options.CalibrationData = None,
    calibration_method: options.CalibrationMethod = "",
    synthetic_calibration: options.SyntheticCalibration = False,
    prepare_only: options.PrepareOnly = False,
    debug_precision: options.DebugPrecision = False,
    no_parity: options.NoParity = False,
    rebuild: options.Rebuild = False,
    strict: options.Strict = False,
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Build an engine from an ONNX model.

    Checks the model, types it for the profile's precision, compiles it, compares it with the FP32
    model at every profile point, and writes one folder with engine, typed model and report.

    \b
    Examples:
      trtdeploy build yolov8n.onnx --profile orin-fp16
      trtdeploy build bert.onnx -p rtx4090-fp16 --symbol batch=1:8:32
      trtdeploy build yolov8n.onnx -p orin-int8 --calib images/
      trtdeploy build yolov8n.orin-fp16/     on the device: a prepared folder

    \b
    Exit codes:
      0  the engine is built (or, with --prepare-only, the folder is prepared)
      1  parity failed: the folder is written, and must not be shipped
      2  wrong usage                3  model or profile cannot be used
      4  a package is missing       6  the compiler failed
      5  only the device can compile; the prepared folder is written
    """
    from trtdeploy import api
    from trtdeploy.building.request import BuildRequest
    from trtdeploy.config.shape_syntax import parse_shape_table

    if not model.is_dir():
        options.require_profile(profile, "build", "orin-fp16")
    debug = ["build.debug_precision=true"] if debug_precision else []
    method = options.list_method_overrides(calibration_method)
    request = BuildRequest(
        model=model,
        profile=profile,
        overrides=(*(overrides or []), *debug, *method),
        shapes=parse_shape_table(shapes or [], symbols or [], values or [], shape_json),
        output_dir=output_dir,
        pins=tuple(pins or []),
        data=data,
        calibration_data=tuple(calibration_data or []),
        synthetic_calibration=synthetic_calibration,
        prepare_only=prepare_only,
        rebuild=rebuild,
        check_parity=not no_parity,
    )
    result = api.build(request, progress=sink.progress)
    _print_result(result, _find_error(result, prepare_only=prepare_only, strict=strict))


def _print_result(result: BuildResult, error: TrtdeployError | None) -> None:
    """Print what was built; end with the exit code of what was not."""
    text = format_rows(
        [
            ("folder", result.folder),
            ("engine", result.engine_path or "none yet"),
            ("model", result.model_path),
            ("report", result.folder / "report.html"),
            ("parity", result.parity_verdict),
            ("expected speed", _describe_expected_speed(result)),
            ("assumed", "\n".join(result.manifest.shape_notes)),
            ("status", "already there, nothing to do (--rebuild forces)" if result.reused else ""),
            ("next", result.next_step),
        ]
    )
    sink.result(text, result.to_dict(), error)


def _describe_expected_speed(result: BuildResult) -> str:
    """Return what to expect of a quantized build: its speed, and whether it may be shipped."""
    quantization = result.manifest.quantization
    if quantization is None:
        return ""
    text = quantization.audit.verdict
    if quantization.is_synthetic:
        text += "\nCalibrated with made-up inputs: do not ship. Give real ones with --calib."
    return text


def _find_error(result: BuildResult, *, prepare_only: bool, strict: bool) -> TrtdeployError | None:
    from trtdeploy.building.result import PREPARED
    from trtdeploy.core.errors import CheckFailedError, NotPossibleError

    if not result.is_accepted(strict=strict):
        return CheckFailedError(
            f"parity: {result.parity_verdict}; {result.folder} is written, but do not ship it",
            hint=f"See where and by how much: trtdeploy report {result.folder}",
        )
    if result.status == PREPARED and not prepare_only:
        return NotPossibleError(
            f"no engine was built: {result.reason}. The prepared folder is complete.",
            hint=result.next_step,
        )
    return None
