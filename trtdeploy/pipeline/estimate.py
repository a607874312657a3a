"""How long compiling took last time, from the manifests of earlier builds."""

from __future__ import annotations

from pathlib import Path

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
    for folder in [path.parent for path in neighbours]:
        try:
            manifest = load_manifest(folder)
        except InputError:
            continue  # somebody else's folder
        same = manifest.get("source", {}).get("sha256") == source_sha256
        seconds = next(
            (s.get("seconds") for s in manifest.get("steps", []) if s.get("name") == "compile"),
            None,
        )
        if same and isinstance(seconds, (int, float)) and seconds > 0:
            found = float(seconds)
            if folder == target:
                break
    return found
