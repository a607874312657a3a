"""Is this the engine its manifest describes? Answered before TensorRT sees a byte of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from trtdeploy.backends.plan_header import PlanHeader, read_plan_header
from trtdeploy.backends.precision_proof import LOW_TYPES
from trtdeploy.core.errors import EngineFileError, NotPossibleError
from trtdeploy.core.units import format_bytes
from trtdeploy.pipeline.folder_files import check_files, check_hash, format_hint
from trtdeploy.runtime.engine_facts import CompileFacts, EngineFacts
from trtdeploy.runtime.version_rule import matches_header

PRODUCTS = {"tensorrt": "TensorRT", "tensorrt_rtx": "TensorRT-RTX"}
"""Backend to the product whose plans it runs."""

_ENGINE = "engine"
_UNPROVEN = "nothing"


def require_engine(facts: EngineFacts) -> tuple[str, Mapping[str, str]]:
    """Return the name of the engine that a folder holds, and the SHA-256 of each of its files.

    Raises:
        NotPossibleError: It is a prepared folder.
    """
    if facts.engine is None or facts.status != _ENGINE:
        raise NotPossibleError(
            f"{facts.folder} is prepared for {facts.device_title} and holds no engine yet",
            hint=f"On the device run: trtdeploy build {facts.folder}   (here, its "
            f"{facts.typed_model[0]} runs in ONNX Runtime)",
        )
    return facts.engine


def read_checked_plan(facts: EngineFacts) -> bytes:
    """Return the bytes of a folder's engine, which are the very bytes that were checked.

    Raises:
        NotPossibleError: The folder holds no engine.
        EngineFileError: The file or the manifest is not what it should be; with both values.
    """
    name, files = require_engine(facts)
    path = facts.folder / name
    header = read_header(path, facts.recompile)
    _check_header(path, header, facts)
    check_consistency(facts)
    plan = read_bytes(path)
    if len(plan) != facts.engine_bytes:
        raise EngineFileError(
            f"{path} has {len(plan)} bytes ({format_bytes(len(plan))}), and its manifest says "
            f"{facts.engine_bytes} ({format_bytes(facts.engine_bytes)}): it was cut or replaced",
            hint=format_hint(facts.recompile),
        )
    check_hash(path, hashlib.sha256(plan).hexdigest(), files[name], facts.recompile)
    return plan


def check_model_files(facts: EngineFacts) -> None:
    """Compare the typed model on the disk with the manifest; a model that is gone is no fault.

    Raises:
        EngineFileError: It is another one.
    """
    files = facts.typed_model[1].items()
    present = {name: sha256 for name, sha256 in files if (facts.folder / name).exists()}
    check_files(facts.folder, present, facts.rebuild)


def check_consistency(facts: EngineFacts) -> None:
    """Compare what the manifest says with what was recorded when the engine was compiled.

    Raises:
        EngineFileError: They differ: folders were mixed, or the manifest was edited.
    """
    problems = [*_find_recipe_conflicts(facts)]
    if facts.compiled is not None:
        problems += _find_compile_conflicts(facts, facts.compiled)
    elif facts.backend in PRODUCTS:
        problems.append("it does not say how the engine was compiled")
    if problems:
        raise EngineFileError(
            f"{facts.folder / 'manifest.json'} does not describe this engine: "
            + "; ".join(problems),
            hint=f"Files of several builds were mixed. Build again: {facts.rebuild}",
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


def _check_header(path: Path, header: PlanHeader, facts: EngineFacts) -> None:
    if header.offset:
        raise EngineFileError(
            f"{path} has {header.offset} bytes of Ultralytics metadata in front; the engine of a "
            "folder is a plain plan",
            hint=f"It comes from another tool. Build again: {facts.recompile}",
        )
    product = PRODUCTS.get(facts.backend)
    if header.product != product:
        raise EngineFileError(
            f"{path} is a plan of {header.product}, and its manifest says {product}",
            hint=f"Build again: {facts.recompile}",
        )
    compiled = facts.compiled
    if compiled is not None and not matches_header(compiled.version, header.version):
        raise EngineFileError(
            f"{path} was made by {header.product} {header.version}, and its manifest says "
            f"{compiled.version}",
            hint=f"Build again: {facts.recompile}",
        )


def _find_recipe_conflicts(facts: EngineFacts) -> Iterator[str]:
    if facts.recipe != facts.planned_recipe:
        yield (
            f"the deploy profile asks for recipe {facts.recipe}, and the precision plan is of "
            f"{facts.planned_recipe}"
        )


def _find_compile_conflicts(facts: EngineFacts, compiled: CompileFacts) -> Iterator[str]:
    pairs = (
        ("recipe", facts.recipe, compiled.recipe),
        ("backend", facts.backend, compiled.backend),
        ("typed model", facts.typed_model[1][facts.typed_model[0]], compiled.typed_model_sha256),
    )
    for what, said, recorded in pairs:
        if said != recorded:
            yield f"{what} {said}, and the engine was compiled for {recorded}"
    if facts.optimization_profiles != compiled.optimization_profiles:
        sizes = [profile.to_dict() for profile in facts.optimization_profiles]
        compiled_sizes = [profile.to_dict() for profile in compiled.optimization_profiles]
        yield f"optimization profiles {sizes}, and the engine was compiled for {compiled_sizes}"
    own, device = compiled.compute_capability, facts.compute_capability
    if own and own != device:
        yield (
            f"device {facts.device_title} (compute capability {device}), and the engine was "
            f"compiled on {compiled.gpu_name} ({own})"
        )
    low = LOW_TYPES.get(compiled.low_dtype)
    if low and low not in compiled.layers and not compiled.proven_by.startswith(_UNPROVEN):
        yield f"precision {compiled.low_dtype}, and the engine's layers are {compiled.layers}"
