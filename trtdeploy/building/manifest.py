"""``manifest.json``: what was built, from what, with what, and what was decided."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from trtdeploy.backends.compiler.compile_request import CompileResult, EngineSpec
from trtdeploy.backends.cuda.local_gpu import LocalGpu
from trtdeploy.building.output_folder import MANIFEST_NAME
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.core.errors import InputError
from trtdeploy.core.files import compute_sha256
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.core.steps import StepRunner
from trtdeploy.core.tensors import Shape
from trtdeploy.report.document import BuildReport, FolderFile, Sha256, SourceModel
from trtdeploy.report.json_document import (
    SCHEMA_VERSION,
    parse_document,
    parse_json,
    render_document,
)
from trtdeploy.report.loading import REPORT_NAME, read_bytes

_COPY_AGAIN = "Copy the folder again, or build it again if an earlier trtdeploy wrote it."


@dataclass(frozen=True)
class DataRecord:
    """Sample inputs that were given, and a hash over their contents."""

    path: str
    sha256: Sha256


@dataclass(frozen=True, kw_only=True)
class CompileRecord(CompileResult):
    """What the compiler did, and what whoever loads the engine compares.

    Attributes:
        typed_model_sha256: Of the model it was compiled from.
        request: What the engine was to be.
        options: Builder settings.
        platform: Where it was compiled, e.g. ``Linux x86_64``.
        gpu: The GPU that compiled; None for TensorRT-RTX, which needs none.
    """

    typed_model_sha256: Sha256
    request: EngineSpec
    options: BuildSection
    platform: str
    gpu: LocalGpu | None


@dataclass(frozen=True, kw_only=True)
class Manifest(BuildReport):
    """A report, and beside it what builds and loads read.

    Attributes:
        key: Equal keys mean equal builds.
        pins: Patterns given with ``--pin``.
        data: Given with ``--calib`` and ``--data``.
        compile: What the compiler did, and how; None where nothing was compiled (ONNX Runtime,
            prepared folders).
    """

    key: str
    pins: tuple[str, ...]
    data: tuple[DataRecord, ...] = ()
    compile: CompileRecord | None

    @property
    def files(self) -> tuple[FolderFile, ...]:
        """The typed model, and the engine if there is one."""
        return (self.typed_model,) if self.engine is None else (self.typed_model, self.engine)

    @property
    def amax(self) -> dict[str, float] | None:
        """Where values were clipped, by name; None when nothing was calibrated."""
        return None if self.quantization is None else self.quantization.amax


@dataclass(frozen=True)
class BuiltFolder:
    """An output folder with what its manifest says."""

    path: Path
    manifest: Manifest

    @property
    def recompile(self) -> str:
        """The command that compiles the typed model of the folder again."""
        return f"trtdeploy build {shlex.quote(str(self.path))} --rebuild"

    @property
    def rebuild(self) -> str:
        """The command that makes the folder again from the source model."""
        manifest = self.manifest
        return _name_rebuild(self.path, manifest.source.file, manifest.profile.name)

    @cached_property
    def inputs(self) -> dict[str, Shape | None]:
        """Shape of each input, with symbolic names."""
        return {spec.name: spec.shape for spec in self.manifest.source.inputs}

    @cached_property
    def outputs(self) -> dict[str, Shape | None]:
        """Shape of each output, with symbolic names."""
        return {spec.name: spec.shape for spec in self.manifest.source.outputs}


def describe_file(path: Path, *others: Path) -> FolderFile:
    """Return name, size and SHA-256 of a file and of the data files that belong to it."""
    hashes = {file.name: compute_sha256(file) for file in (path, *others)}
    size = sum(file.stat().st_size for file in (path, *others))
    return FolderFile(path.name, size, hashes[path.name], hashes)


def save_manifest(folder: Path, manifest: Manifest, steps: StepRunner) -> Manifest:
    """Write ``manifest.json`` and ``report.json``, dated and with the steps until now.

    The caller owns atomicity.

    The report is the part for people and dashboards: outcome, steps, findings, precision. Figures
    that are not finite are null: JSON has neither NaN nor infinity.
    """
    dated = replace(manifest, steps=steps.list_all(), created=read_clock())
    kinds: dict[str, type[BuildReport]] = {MANIFEST_NAME: Manifest, REPORT_NAME: BuildReport}
    for name, kind in kinds.items():
        (folder / name).write_text(render_document(kind, dated), encoding="utf-8")
    return dated


def read_clock() -> datetime:
    """Return the time to the second."""
    return datetime.now(timezone.utc).replace(microsecond=0)


def load_manifest(folder: Path) -> Manifest:
    """Read the manifest of an output folder; every field is sound, and fits the others.

    Raises:
        InputError: There is none, it is damaged, or it has a schema this version cannot read.
    """
    path = folder / MANIFEST_NAME
    if not path.exists():
        raise InputError(
            f"{folder} is not an output folder of trtdeploy: it has no {MANIFEST_NAME}",
            hint="Give an ONNX file, or a folder that 'trtdeploy build' wrote.",
        )
    if not path.is_file():
        raise InputError(f"{path} is not a plain file")  # reading a pipe would wait for ever
    raw = read_bytes(path)
    try:
        manifest = parse_document(Manifest, raw, str(path), _COPY_AGAIN)
    except InputError:
        _refuse_earlier_version(folder, raw)
        raise
    problem = next(_find_conflicts(manifest), "")
    if problem:
        raise InputError(f"{path} is damaged: {problem}", hint=_COPY_AGAIN)
    return manifest


def load_folder(path: Path) -> BuiltFolder:
    """Return an output folder; see ``load_manifest``."""
    return BuiltFolder(path, load_manifest(path))


def _find_conflicts(manifest: Manifest) -> Iterator[str]:
    """Yield what fields disagree on; what each must be by itself, its type says."""
    if (manifest.status == "engine") != (manifest.engine is not None):
        yield f"engine: the status is {manifest.status!r}, which does not fit"
    if not manifest.optimization_profiles:
        yield "optimization_profiles: there is none"
    for position, profile in enumerate(manifest.optimization_profiles):
        place = f"optimization_profiles.{position}"
        yield from _find_wrong_ranges(place, profile)
        yield from _find_other_inputs(place, profile, manifest.source)


def _find_wrong_ranges(place: str, profile: OptimizationProfile) -> Iterator[str]:
    tables: dict[str, Mapping[str, ShapeRange | ValueRange]]
    tables = {"shapes": profile.shapes, "values": profile.values}
    for kind, table in tables.items():
        for name, sizes in table.items():
            if not len(sizes.min) == len(sizes.opt) == len(sizes.max):
                yield f"{place}.{kind}: {name!r}: min, opt and max have different lengths"
                return
            rows = zip(sizes.min, sizes.opt, sizes.max, strict=True)
            if not all(low <= usual <= high for low, usual, high in rows):
                yield f"{place}.{kind}: {name!r}: min, opt and max are not in this order"
            if kind == "shapes" and any(size < 0 for size in sizes.min):
                yield f"{place}.{kind}: {name!r}: a size is negative"


def _find_other_inputs(
    place: str, profile: OptimizationProfile, source: SourceModel
) -> Iterator[str]:
    inputs = {tensor.name: tensor.shape for tensor in source.inputs}
    if set(profile.shapes) != set(inputs):
        yield f"{place}: is for {sorted(profile.shapes)}, and the inputs are {sorted(inputs)}"
        return
    if not set(profile.values) <= set(inputs):
        yield f"{place}: values are for {sorted(profile.values)}, which are not all inputs"
    for name, sizes in profile.shapes.items():
        shape = inputs[name]
        if shape is not None and len(shape) != len(sizes.min):
            yield f"{place}: {name!r} has {len(sizes.min)} sizes, and the input {len(shape)}"


def _refuse_earlier_version(folder: Path, raw: bytes) -> None:
    """Say how a folder of an earlier trtdeploy is built again.

    Raises:
        InputError: It is one.
    """
    data = parse_json(raw, str(folder / MANIFEST_NAME), _COPY_AGAIN)
    found = data.get("schema_version") if isinstance(data, dict) else None
    if type(found) is not int or not 0 < found < SCHEMA_VERSION:
        return
    source = _find_text(data, "source", "file") or "MODEL.onnx"
    profile = _find_text(data, "profile", "profile", "name") or "NAME"
    raise InputError(
        f"{folder / MANIFEST_NAME} was written by an earlier trtdeploy: it has schema version "
        f"{found}, and this one reads {SCHEMA_VERSION}",
        hint=f"Build the folder again: {_name_rebuild(folder, source, profile)}",
    )


def _name_rebuild(folder: Path, source: str, profile: str) -> str:
    words = ("trtdeploy", "build", source, "--profile", profile, "--output-dir", str(folder))
    return f"{shlex.join(words)} --rebuild"


def _find_text(data: Any, *keys: str) -> str:
    """Return a text of a file that nobody has checked; empty when there is none to repeat."""
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    is_plain = isinstance(data, str) and data.isprintable() and "\ufffd" not in data
    return str(data) if is_plain and not data.startswith("-") else ""
