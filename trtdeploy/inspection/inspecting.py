"""One question for any file: what is it, and what was it made from?"""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from trtdeploy.backends.engine.plan_header import PlanHeader, read_plan_header
from trtdeploy.building.folder_check import is_intact
from trtdeploy.building.manifest import load_folder
from trtdeploy.building.output_folder import MANIFEST_NAME
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError, ModelFileError
from trtdeploy.core.tensors import format_shape


def inspect_path(path: Path) -> dict[str, Any]:
    """Return facts about an ONNX file, an engine, or an output folder; ``kind`` says which.

    Raises:
        InputError: It does not exist, cannot be read, or is nothing that trtdeploy knows.
    """
    if path.is_dir():
        return _inspect_folder(path)
    try:
        header = read_plan_header(path) if path.is_file() else None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if header is not None:
        return _inspect_engine(path, header)
    try:
        return _inspect_onnx(path)
    except ModelFileError as error:
        if path.suffix == ".onnx" or not path.is_file():
            raise
        raise InputError(
            f"{path} is neither an engine nor an ONNX model",
            hint="Expected an .onnx file, an engine of TensorRT, or an output folder.",
        ) from error


def _inspect_engine(path: Path, header: PlanHeader) -> dict[str, Any]:
    return {
        "kind": "engine",
        "path": str(path),
        "bytes": path.stat().st_size,
        "product": header.product,
        "version": header.version,
        "compute_capabilities": list(header.compute_capabilities),
        "prefix": "Ultralytics metadata" if header.offset else None,
        "plan_offset": header.offset,
        "metadata": header.metadata,
    }


def _inspect_folder(folder: Path) -> dict[str, Any]:
    built = load_folder(folder)
    manifest = built.manifest
    engine, resolved, precision = manifest.engine, manifest.profile, manifest.precision
    facts: dict[str, Any] = {
        "kind": "output folder",
        "path": str(folder),
        "status": manifest.status,
        "created": manifest.created.isoformat(),
        "source": manifest.source,
        "deploy_profile": resolved.profile,
        "device": resolved.device.title,
        "typed_model": manifest.typed_model,
        "engine": engine,
        "is_intact": is_intact(built),
        "precision": precision.counts,
        "constants": precision.constants,
        "optimization_profiles": manifest.optimization_profiles,
        "steps": manifest.steps,
        "environment": manifest.environment,
    }
    engine_path = folder / engine.file if engine else None
    if engine_path is not None and engine_path.suffix == ".engine" and engine_path.is_file():
        header = read_plan_header(engine_path)
        facts["plan"] = _inspect_engine(engine_path, header) if header else None
    return dict(to_jsonable_python(facts))


def _inspect_onnx(path: Path) -> dict[str, Any]:
    # onnx is only needed here, and costs more than the rest of the command
    from trtdeploy.graph.loading import load_model
    from trtdeploy.graph.model import walk_nodes
    from trtdeploy.graph.model_inputs import describe_inputs

    model = load_model(path)
    operators = Counter(node.op_type for node in walk_nodes(model.graph))
    constants = Counter(DType.from_onnx(t.data_type).label for t in model.graph.initializer)
    return {
        "kind": "onnx",
        "path": str(path),
        "bytes": path.stat().st_size,
        "opset": model.opset,
        "ir_version": model.proto.ir_version,
        "producer": f"{model.proto.producer_name} {model.proto.producer_version}".strip(),
        "inputs": to_jsonable_python(describe_inputs(model)),
        "outputs": to_jsonable_python(model.output_specs()),
        "shapes": {s.name: format_shape(s.shape) for s in model.input_specs()},
        "nodes": sum(operators.values()),
        "operators": dict(operators.most_common()),
        "initializers": dict(constants),
        "large_weight_bytes": model.weight_bytes,
        "metadata": {entry.key: entry.value for entry in model.proto.metadata_props},
    }


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
