"""``manifest.json``: what was built, from what, with what, and what was decided."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from trtdeploy.core.errors import InputError
from trtdeploy.core.files import compute_sha256
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.pipeline.manifest_document import ManifestDocument
from trtdeploy.pipeline.output_folder import MANIFEST_NAME
from trtdeploy.pipeline.steps import StepRunner
from trtdeploy.report.json_document import SCHEMA_VERSION, describe_damage, drop_infinities

REPORT_NAME = "report.json"
REPORT_KEYS = (
    "schema_version", "status", "created", "source", "typed_model", "engine", "profile",
    "optimization_profiles", "shape_notes", "precision", "quantization", "check", "compile",
    "steps", "environment", "parity", "reproduce",
)  # fmt: skip


def describe_file(path: Path, *others: Path) -> dict[str, Any]:
    """Return name, size and SHA-256 of a file and of the data files that belong to it."""
    hashes = {file.name: compute_sha256(file) for file in (path, *others)}
    return {
        "file": path.name,
        "bytes": sum(file.stat().st_size for file in (path, *others)),
        "sha256": hashes[path.name],
        "files": hashes,
    }


def describe_tensors(specs: tuple[TensorSpec, ...]) -> list[dict[str, Any]]:
    """Return inputs or outputs as plain data."""
    return [
        {
            "name": spec.name,
            "dtype": spec.dtype.label,
            "shape": None if spec.shape is None else list(spec.shape),
            "is_shape_tensor": spec.is_shape_tensor,
        }
        for spec in specs
    ]


def save_manifest(folder: Path, manifest: dict[str, Any], steps: StepRunner) -> None:
    """Write ``manifest.json`` and ``report.json``; the caller owns atomicity.

    The report is the part for people and dashboards: outcome, steps, findings, precision.
    """
    manifest["steps"] = steps.to_list()
    manifest["created"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
    for name, data in ((MANIFEST_NAME, manifest), (REPORT_NAME, take_report(manifest))):
        text = json.dumps(drop_infinities(data), indent=2, ensure_ascii=False, allow_nan=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")


def take_report(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a manifest that ``report.json`` holds."""
    return {key: manifest[key] for key in REPORT_KEYS if key in manifest}


def load_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of an output folder; every field that this package reads is sound.

    Raises:
        InputError: There is none, it is damaged, or it has a schema this version cannot read.
    """
    path = folder / MANIFEST_NAME
    data = _read_json(folder, path)
    if not isinstance(data, dict) or data.get("schema_version") != SCHEMA_VERSION:
        found = data.get("schema_version") if isinstance(data, dict) else None
        raise InputError(
            f"{path} has schema version {found!r}; this trtdeploy reads {SCHEMA_VERSION}",
            hint="Use the trtdeploy that wrote it, or build the folder again.",
        )
    try:
        # As JSON again: what is checked is what was parsed, whatever keys the file has twice.
        ManifestDocument.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise InputError(
            f"{path} is damaged: {describe_damage(error)}",
            hint="Copy the folder again, or build it again if an earlier trtdeploy wrote it.",
        ) from error
    return data


def _read_json(folder: Path, path: Path) -> Any:
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a plain file")  # reading a pipe would wait for ever
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{folder} is not an output folder of trtdeploy: it has no {MANIFEST_NAME}",
            hint="Give an ONNX file, or a folder that 'trtdeploy build' wrote.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read: {error}", hint="Build the folder again."
        ) from error
