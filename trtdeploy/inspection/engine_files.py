"""Engines where a model is needed: compiled already, and not to be read back."""

from __future__ import annotations

import shlex
from pathlib import Path

from trtdeploy.backends.engine.plan_header import read_plan_header
from trtdeploy.building.output_folder import MANIFEST_NAME
from trtdeploy.core.errors import ModelFileError


def refuse_engine(path: Path) -> None:
    """Refuse a file that is an engine; whether anything else is a model is not asked here.

    Raises:
        ModelFileError: It is a plan of TensorRT or TensorRT-RTX, plain or behind the metadata of
            Ultralytics.
    """
    try:
        header = read_plan_header(path) if path.is_file() else None
    except OSError:
        return  # whoever reads the model says so
    if header is None:
        return
    prefix = " behind the metadata of Ultralytics" if header.offset else ""
    hint = f"What it is: trtdeploy inspect {shlex.quote(str(path))}   (trtdeploy.load runs it)"
    if (path.parent / MANIFEST_NAME).is_file():
        hint = f"It belongs to the output folder {path.parent}: build and parity take that."
    raise ModelFileError(
        f"{path} is an engine of {header.product} {header.version}{prefix}, compiled already; an "
        "ONNX file was expected",
        hint=hint,
    )
