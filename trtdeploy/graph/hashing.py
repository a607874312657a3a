"""When two builds are the same build."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic_core import to_jsonable_python

from trtdeploy.core.errors import InputError
from trtdeploy.core.files import compute_sha256
from trtdeploy.graph.model import OnnxModel


def hash_model(model: OnnxModel) -> str:
    """Return a SHA-256 over the ONNX file and every data file it refers to."""
    own = compute_sha256(model.path)
    if not model.data_files:
        return own
    digest = hashlib.sha256(own.encode())
    for path in sorted(model.data_files):
        digest.update(f"{path.name}:{compute_sha256(path)}".encode())
    return digest.hexdigest()


def hash_data(path: Path) -> str:
    """Return a SHA-256 over a data file, or over names and contents of a folder's files.

    Raises:
        InputError: There is no such file or folder.
    """
    if path.is_file():
        return compute_sha256(path)
    if not path.is_dir():
        raise InputError(f"there is no data at {path}", hint="Check the path after --data.")
    digest = hashlib.sha256()
    for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        line = f"{file.relative_to(path)}:{compute_sha256(file)}"
        digest.update(line.encode("utf-8", "surrogateescape"))  # names may be any bytes
    return digest.hexdigest()


def compute_build_key(parts: dict[str, Any]) -> str:
    """Return a SHA-256 over everything that decides the result, in canonical JSON."""
    text = json.dumps(to_jsonable_python(parts), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
