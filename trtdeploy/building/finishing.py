"""The end of every build: parity, then the manifest and the reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from trtdeploy.building.manifest import Manifest, save_manifest
from trtdeploy.building.parity_step import check_built_parity
from trtdeploy.core.steps import StepRunner
from trtdeploy.parity.request import ParityRequest
from trtdeploy.report.writing import write_reports


def finish_folder(
    folder: Path, manifest: Manifest, request: ParityRequest | None, steps: StepRunner
) -> Manifest:
    """Check parity, if asked to; write manifest and reports, and return the manifest as written."""
    if request is not None:
        save_manifest(folder, manifest, steps)  # an engine is loaded by its manifest
        manifest = replace(manifest, parity=check_built_parity(request, steps))
    manifest = save_manifest(folder, manifest, steps)
    write_reports(folder, manifest)
    return manifest
