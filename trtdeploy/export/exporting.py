"""The entry: gives a request to the adapter of its source."""

from __future__ import annotations

import importlib
from typing import Any, Final

from trtdeploy.core.errors import MissingDependencyError, UsageError
from trtdeploy.core.steps import ProgressCallback, StepRunner, ignore_progress
from trtdeploy.export.framework_import import import_framework
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.export.sources import Kind, parse_source

INSTALL: Final = "pip install 'trtdeploy[export]'"

_ADAPTERS: Final[dict[Kind, str]] = {
    "callable": "trtdeploy.export.adapters.python_callable",
    "program": "trtdeploy.export.adapters.exported_program",
    "torchscript": "trtdeploy.export.adapters.torchscript_file",
    "ultralytics": "trtdeploy.export.adapters.ultralytics",
    "torchvision": "trtdeploy.export.adapters.torchvision",
    "timm": "trtdeploy.export.adapters.timm",
    "transformers": "trtdeploy.export.adapters.transformers",
}
_OLDEST_TORCH: Final = (2, 10)
"""Older ones write files that lack pins, module names or the limits of sizes."""


def export_model(
    request: ExportRequest, progress: ProgressCallback = ignore_progress
) -> ExportResult:
    """Write an ONNX file from a model of any supported source, proven against it.

    Raises:
        UsageError: The source is of no known form, or the request does not fit it.
        InputError: The model cannot be exported as asked; names module, line and remedy.
        CheckFailedError: The file does not compute what its source computes. It is not written.
        MissingDependencyError: A package is not installed; the hint says which.
    """
    kind, name = parse_source(request.source)
    if kind == "onnx":
        # loaded here, since it is imported for such sources only
        cleaning: Any = importlib.import_module("trtdeploy.export.onnx.source")
        cleaned: ExportResult = cleaning.clean_onnx(request, progress)
        return cleaned
    _require_torch(kind)
    adapter: Any = importlib.import_module(_ADAPTERS[kind])
    torch_exporting: Any = importlib.import_module("trtdeploy.export.pytorch.exporting")
    steps = StepRunner(progress)
    autocast: Any = importlib.import_module("trtdeploy.export.pytorch.autocast")
    with steps.run("load") as step, autocast.remember_autocast():
        loaded = adapter.load_source(request, name)
        step.detail = f"{kind} {name}"
    result: ExportResult = torch_exporting.export_torch(loaded, request, steps)
    return result


def _require_torch(kind: Kind) -> None:
    torch = import_framework("torch", needed_for=f"exporting {kind} models", install=INSTALL)
    import_framework("onnxscript", needed_for="PyTorch's ONNX exporter", install=INSTALL)
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if version < _OLDEST_TORCH:
        raise MissingDependencyError(
            f"PyTorch {torch.__version__} is too old for exporting; 2.10 or newer is needed",
            hint=f"Install it with: {INSTALL}",
        )


def refuse_options(request: ExportRequest, kind: str, *names: str) -> None:
    """Refuse options that a source has no use for.

    Raises:
        UsageError: One of the named fields of the request is set.
    """
    defaults = ExportRequest(request.source, request.output)
    for name in names:
        if getattr(request, name) != getattr(defaults, name):
            option = "--input" if name == "inputs" else f"--{name}"
            raise UsageError(
                f"{option} has no meaning for a {kind} source", hint=f"Leave {option} out."
            )
