"""How long compiling took last time, from the manifests of earlier builds."""

from __future__ import annotations

from pathlib import Path

from trtdeploy.building.manifest import load_manifest
from trtdeploy.core.errors import InputError

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
        seconds = sum(step.seconds for step in manifest.steps if step.name == "compile")
        if manifest.source.sha256 == source_sha256 and seconds > 0:
            found = seconds
            if folder == target:
                break
    return found
