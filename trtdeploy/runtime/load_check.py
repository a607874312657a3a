"""Is this the engine its manifest describes? Answered before TensorRT sees a byte of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from trtdeploy.backends.compiler.precision_proof import LOW_TYPES
from trtdeploy.backends.engine.plan_header import PlanHeader, read_plan_header
from trtdeploy.building.folder_check import check_files, check_hash, format_hint
from trtdeploy.building.manifest import BuiltFolder, CompileRecord
from trtdeploy.core.errors import EngineFileError, NotPossibleError
from trtdeploy.core.units import format_bytes
from trtdeploy.report.document import FolderFile
from trtdeploy.runtime.version_rule import matches_header

PRODUCTS = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}
"""Backend to the product whose plans it runs."""

_UNPROVEN = "nothing"


def require_engine(built: BuiltFolder) -> FolderFile:
    """Return the engine a folder holds.

    Raises:
        NotPossibleError: It is a prepared folder.
    """
    manifest = built.manifest
    if manifest.engine is None:
        raise NotPossibleError(
            f"{built.path} is prepared for {manifest.profile.device.title} and holds no engine yet",
            hint=f"On the device run: trtdeploy build {built.path}   (here, its "
            f"{manifest.typed_model.file} runs in ONNX Runtime)",
        )
    return manifest.engine


def read_checked_plan(built: BuiltFolder) -> bytes:
    """Return the bytes of a folder's engine, which are the very bytes that were checked.

    Raises:
        NotPossibleError: The folder holds no engine.
        EngineFileError: The file or the manifest is not what it should be; with both values.
    """
    engine = require_engine(built)
    path = built.path / engine.file
    header = read_header(path, built.recompile)
    _check_header(path, header, built)
    check_consistency(built)
    plan = read_bytes(path)
    if len(plan) != engine.bytes:
        raise EngineFileError(
            f"{path} has {len(plan)} bytes ({format_bytes(len(plan))}), and its manifest says "
            f"{engine.bytes} ({format_bytes(engine.bytes)}): it was cut or replaced",
            hint=format_hint(built.recompile),
        )
    check_hash(path, hashlib.sha256(plan).hexdigest(), engine.sha256, built.recompile)
    return plan


def check_model_files(built: BuiltFolder) -> None:
    """Compare the typed model on the disk with the manifest; a model that is gone is no fault.

    Raises:
        EngineFileError: It is another one.
    """
    files = built.manifest.typed_model.files.items()
    present = {name: sha256 for name, sha256 in files if (built.path / name).exists()}
    check_files(built.path, present, built.rebuild)


def check_consistency(built: BuiltFolder) -> None:
    """Compare what the manifest says with what was recorded when the engine was compiled.

    Raises:
        EngineFileError: They differ: folders were mixed, or the manifest was edited.
    """
    problems = [*_find_recipe_conflicts(built)]
    if built.manifest.compile is not None:
        problems += _find_compile_conflicts(built, built.manifest.compile)
    elif built.manifest.profile.profile.backend in PRODUCTS:
        problems.append("it does not say how the engine was compiled")
    if problems:
        raise EngineFileError(
            f"{built.path / 'manifest.json'} does not describe this engine: " + "; ".join(problems),
            hint=f"Files of several builds were mixed. Build again: {built.rebuild}",
        )


def read_header(path: Path, remedy: str) -> PlanHeader:
    """Return the header of a plan.

    Raises:
        EngineFileError: It is missing, empty, unreadable, or no plan.
    """
    try:
        size_bytes = path.stat().st_size
        header = read_plan_header(path)
    except OSError as error:
        raise EngineFileError(
            f"{path} cannot be read: {error.strerror}", hint=f"Build again: {remedy}"
        ) from error
    if size_bytes == 0:
        raise EngineFileError(f"{path} is empty", hint=f"Build again: {remedy}")
    if header is None:
        with path.open("rb") as file:
            start = file.read(4)
        raise EngineFileError(
            f"{path} is no TensorRT engine: it begins with {start!r}, a plan of TensorRT with "
            f"{b'ftrt'!r} and one of TensorRT-RTX with {b'vtrt'!r}",
            hint=f"Build again: {remedy}",
        )
    return header


def read_bytes(path: Path) -> bytes:
    """Return a file's content.

    Raises:
        EngineFileError: It cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise EngineFileError(f"{path} cannot be read: {error.strerror}") from error


def _check_header(path: Path, header: PlanHeader, built: BuiltFolder) -> None:
    if header.offset:
        raise EngineFileError(
            f"{path} has {header.offset} bytes of Ultralytics metadata in front; the engine of a "
            "folder is a plain plan",
            hint=f"It comes from another tool. Build again: {built.recompile}",
        )
    product = PRODUCTS.get(built.manifest.profile.profile.backend)
    if header.product != product:
        raise EngineFileError(
            f"{path} is a plan of {header.product}, and its manifest says {product}",
            hint=f"Build again: {built.recompile}",
        )
    compiled = built.manifest.compile
    if compiled is not None and not matches_header(compiled.version, header.version):
        raise EngineFileError(
            f"{path} was made by {header.product} {header.version}, and its manifest says "
            f"{compiled.version}",
            hint=f"Build again: {built.recompile}",
        )


def _find_recipe_conflicts(built: BuiltFolder) -> Iterator[str]:
    asked, planned = built.manifest.profile.profile.recipe, built.manifest.precision.recipe
    if asked != planned:
        yield (
            f"the deploy profile asks for recipe {asked}, and the precision plan is of {planned}"
        )


def _find_compile_conflicts(built: BuiltFolder, compiled: CompileRecord) -> Iterator[str]:
    manifest, request, proof = built.manifest, compiled.request, compiled.precision
    chosen, device = manifest.profile.profile, manifest.profile.device
    pairs = (
        ("recipe", chosen.recipe, request.recipe),
        ("backend", chosen.backend, request.module),
        ("typed model", manifest.typed_model.sha256, compiled.typed_model_sha256),
    )
    for what, said, recorded in pairs:
        if said != recorded:
            yield f"{what} {said}, and the engine was compiled for {recorded}"
    if manifest.optimization_profiles != request.optimization_profiles:
        sizes, compiled_sizes = (
            [asdict(profile) for profile in profiles]
            for profiles in (manifest.optimization_profiles, request.optimization_profiles)
        )
        yield f"optimization profiles {sizes}, and the engine was compiled for {compiled_sizes}"
    gpu = compiled.gpu
    if gpu is not None and gpu.compute_capability != device.compute_capability:
        yield (
            f"device {device.title} (compute capability {device.compute_capability}), and the "
            f"engine was compiled on {gpu.name} ({gpu.compute_capability})"
        )
    low = LOW_TYPES.get(request.low_dtype)
    if low and low not in proof.layers and not proof.proven_by.startswith(_UNPROVEN):
        yield f"precision {request.low_dtype}, and the engine's layers are {proof.layers}"
