"""Take a trained model to NVIDIA GPUs, and prove that what ships still computes the right answer.

The public API loads on first use, so ``import trtdeploy`` costs nothing::

    import trtdeploy

    trtdeploy.export_onnx("torchvision:resnet50", "resnet50.onnx")
    result = trtdeploy.build("yolov8n.onnx", "orin-fp16")
    report = trtdeploy.check("yolov8n.onnx", "orin-fp16")
    parity = trtdeploy.check_parity("yolov8n.orin-fp16", "yolov8n.onnx")
    pins = trtdeploy.find_pins("minilm.onnx", "orin-int8", calibration_data="sentences.npz")
    facts = trtdeploy.inspect("yolov8n.orin-fp16")
    with trtdeploy.load("yolov8n.orin-fp16") as session:
        outputs = session.run({"images": images})
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtdeploy.api import (
        build,
        check,
        check_parity,
        export_onnx,
        find_pins,
        inspect,
        load,
        request_parity,
    )
    from trtdeploy.backends.session import Session
    from trtdeploy.building.request import BuildRequest
    from trtdeploy.building.result import BuildResult
    from trtdeploy.core.errors import TrtdeployError
    from trtdeploy.export.request import ExportRequest
    from trtdeploy.export.result import ExportResult
    from trtdeploy.parity.request import ParityRequest
    from trtdeploy.parity.result import ParityReport
    from trtdeploy.pinning.report import PinningReport
    from trtdeploy.pinning.request import PinRequest
    from trtdeploy.preflight.report import CheckReport
    from trtdeploy.runtime.options import SessionOptions

__version__ = "0.1.0"

_PUBLIC = {
    "build": "trtdeploy.api",
    "check": "trtdeploy.api",
    "export_onnx": "trtdeploy.api",
    "ExportRequest": "trtdeploy.export.request",
    "ExportResult": "trtdeploy.export.result",
    "find_pins": "trtdeploy.api",
    "PinRequest": "trtdeploy.pinning.request",
    "PinningReport": "trtdeploy.pinning.report",
    "inspect": "trtdeploy.api",
    "check_parity": "trtdeploy.api",
    "ParityReport": "trtdeploy.parity.result",
    "load": "trtdeploy.api",
    "BuildRequest": "trtdeploy.building.request",
    "BuildResult": "trtdeploy.building.result",
    "ParityRequest": "trtdeploy.parity.request",
    "request_parity": "trtdeploy.api",
    "CheckReport": "trtdeploy.preflight.report",
    "Session": "trtdeploy.backends.session",
    "SessionOptions": "trtdeploy.runtime.options",
    "TrtdeployError": "trtdeploy.core.errors",
}

__all__ = [
    "BuildRequest",
    "BuildResult",
    "CheckReport",
    "ExportRequest",
    "ExportResult",
    "ParityReport",
    "ParityRequest",
    "PinRequest",
    "PinningReport",
    "Session",
    "SessionOptions",
    "TrtdeployError",
    "__version__",
    "build",
    "check",
    "check_parity",
    "export_onnx",
    "find_pins",
    "inspect",
    "load",
    "request_parity",
]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'trtdeploy' has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
