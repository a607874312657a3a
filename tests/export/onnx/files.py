"""ONNX files as users have them, and running them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import constant, model, op, random_array, save, value
from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.export.onnx.source import clean_onnx
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult

BATCH: dict[str, dict[int, str]] = {"x": {0: "batch"}}


def clean(proto: ModelProto, folder: Path, **request: Any) -> ExportResult:
    source = save(proto, folder / "source.onnx")
    return clean_onnx(ExportRequest(str(source), folder / "out" / "clean.onnx", **request))


def run(path: Path, **feeds: Any) -> dict[str, Any]:
    with OnnxRuntimeSession(path, optimize=False) as session:
        return session.run(feeds)


def convolution(
    after: list[NodeProto], *constants: TensorProto, batch: int | str = "batch", y: Any = None
) -> ModelProto:
    """Make ``r = Relu(Conv(x))`` of batch x 6 x 6 x 6, followed by ``after``."""
    nodes = [op("Conv", "x w", "c"), op("Relu", "c", "r"), *after]
    weights = constant("w", random_array(6, 3, 3, 3, scale=0.3))
    inputs = [value("x", (batch, 3, 8, 8))]
    return model(nodes, inputs, [value("y", y)], [weights, *constants])


def reshaped(target: list[int], *, batch: int | str = "batch") -> ModelProto:
    """Make ``y = ReduceMean(Reshape(r, target))`` over the last axis."""
    return convolution(
        [op("Reshape", "r target", "f", "fixed"), op("ReduceMean", "f", "y", axes=[-1])],
        constant("target", target, np.int64),
        batch=batch,
    )
