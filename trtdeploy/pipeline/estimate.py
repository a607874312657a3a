"""How long compiling took last time, from the manifests of earlier builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtdeploy.core.errors import InputError
from trtdeploy.pipeline.manifest import load_manifest

_MOST_FOLDERS = 50


def estimate_compile_s(target: Path, source_sha256: str) -> float | None:
    """Return the compile time of an earlier build of the same model, None if there is none.

    Looks at ``target`` itself and its neighbours; the build for the same place counts most.
    """
    if not target.parent.is_dir():
        return None
    neighbours = sorted(target.parent.glob("*/manifest.json"))[:_MOST_FOLDERS]
    found = None
    for path in neighbours:
        folder = path.parent
        try:
            # a text search is cheaper than reading the manifests of other models
            if not path.is_file() or source_sha256.encode() not in path.read_bytes():
                continue
            manifest = load_manifest(folder)
        except (InputError, OSError):
            continue  # somebody else's folder
        seconds = (
            _find_seconds(manifest) if manifest["source"].get("sha256") == source_sha256 else 0
        )
        if seconds > 0:
            found = seconds
            if folder == target:
                break
    return found


def _find_seconds(manifest: dict[str, Any]) -> float:
    for step in manifest["steps"]:
        if isinstance(step, dict) and step.get("name") == "compile":
            seconds = step.get("seconds")
            return float(seconds) if isinstance(seconds, (int, float)) else 0.0
    return 0.0
