"""Building from a prepared folder, usually on the device itself."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

from trtdeploy.backends.installed import describe_environment
from trtdeploy.building.compiling import compile_folder
from trtdeploy.building.finishing import finish_folder
from trtdeploy.building.folder_check import check_typed_model, is_intact, require_plain_files
from trtdeploy.building.manifest import BuiltFolder, load_folder
from trtdeploy.building.output_folder import MANIFEST_NAME, check_replaceable, open_output_folder
from trtdeploy.building.parity_step import find_reference, request_folder_parity
from trtdeploy.building.request import BuildRequest
from trtdeploy.building.result import ENGINE, BuildResult
from trtdeploy.building.target import judge_ability
from trtdeploy.calibration.document import CALIBRATION_NAME
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.errors import InputError, NotPossibleError, UsageError
from trtdeploy.core.steps import ProgressCallback, StepRunner, ignore_progress
from trtdeploy.graph.loading import load_model
from trtdeploy.parity.request import SessionOpener


def build_prepared(
    request: BuildRequest,
    progress: ProgressCallback = ignore_progress,
    open_engine: SessionOpener | None = None,
) -> BuildResult:
    """Compile the typed model of a prepared folder; profile and sizes come from its manifest.

    The folder is replaced as a whole once the engine is there. Parity is measured when the source
    model lies beside the folder; otherwise the emulated result of the preparation stays.

    Raises:
        UsageError: Options that only make sense with an ONNX file.
        InputError: The folder is damaged: a file differs from its manifest.
        NotPossibleError: This machine cannot compile for the folder's device either.
    """
    folder = request.model
    built = load_folder(folder)
    manifest = built.manifest
    _refuse_options(request)
    require_plain_files(folder, [manifest.typed_model])
    check_typed_model(built)
    _require_own_weights(built)
    manifest.profile.require_sound(str(folder / MANIFEST_NAME))
    _require_one_recipe(built)
    target = request.output_dir or folder
    is_done = manifest.status == ENGINE and target == folder and not request.rebuild
    if is_done and is_intact(built):
        return BuildResult(folder, manifest, reused=True)
    check_replaceable(target)
    ability = judge_ability(manifest.profile, target)
    if not ability.possible:
        raise NotPossibleError(ability.reason, hint=ability.next_step)
    steps = StepRunner(progress, manifest.steps)
    with open_output_folder(target) as fresh:
        for name in manifest.typed_model.files:
            _take_over(folder / name, fresh / name)
        if (folder / CALIBRATION_NAME).is_file() and not (folder / CALIBRATION_NAME).is_symlink():
            _take_over(folder / CALIBRATION_NAME, fresh / CALIBRATION_NAME)
        manifest = replace(manifest, environment=describe_environment())
        manifest = compile_folder(BuiltFolder(fresh, manifest), target, steps)
        reference = find_reference(built) if request.check_parity else None
        parity = None
        if reference is not None:
            compiled = BuiltFolder(fresh, manifest)
            parity = request_folder_parity(compiled, reference, open_engine)
        manifest = finish_folder(fresh, manifest, parity, steps)
    return BuildResult(target, manifest)


def _refuse_options(request: BuildRequest) -> None:
    given = {
        "--profile": request.profile,
        "--set": request.overrides,
        "--pin": request.pins,
        "--data": request.data,
        "--calib": request.calibration_data or request.synthetic_calibration,
        "--prepare-only": request.prepare_only,
        "sizes": request.shapes != ShapeTable(),
    }
    used = [name for name, value in given.items() if value]
    if used:
        raise UsageError(
            f"{request.model} is a prepared folder, which settled {', '.join(used)} already",
            hint="Build from the ONNX file again to change them.",
        )


def _require_one_recipe(built: BuiltFolder) -> None:
    """The profile names the engine's precision, the plan is how the model was typed."""
    named, planned = built.manifest.profile.profile.recipe, built.manifest.precision.recipe
    if named != planned:
        raise InputError(
            f"{built.path / MANIFEST_NAME}: profile.profile.recipe is {named}, and the model was "
            f"typed as precision.recipe says: {planned}",
            hint="Build from the ONNX file again to change the recipe.",
        )


def _require_own_weights(built: BuiltFolder) -> None:
    """Refuse a typed model that would read anything but the files its manifest lists."""
    model = built.manifest.typed_model
    listed, path = set(model.files), built.path / model.file
    others = {file.name for file in load_model(path).data_files}
    if others - listed:
        raise InputError(
            f"{path} keeps weights in {sorted(others - listed)[0]!r}, which its manifest does not "
            "list",
            hint="Copy the folder again; it must not be changed by hand.",
        )


def _take_over(source: Path, copy: Path) -> None:
    """Link where the file system can (the typed model may be gigabytes), else copy."""
    if not source.exists():
        return
    try:
        os.link(source, copy)
    except OSError:
        shutil.copy2(source, copy)
