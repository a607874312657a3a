"""What ``manifest.json`` must hold: ``report.json``, and beside it what builds and loads read.

Later code indexes the manifest as plain data and asks nothing again: every field it reads is
required here, of the right type, and agrees with the fields it belongs to.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo, field_validator, model_validator

from trtdeploy.report.document import (
    BuildReport,
    CompileSection,
    FileSection,
    OptimizationProfileEntry,
    PointTable,
    ProofEntry,
    SourceSection,
    TypedModelSection,
)
from trtdeploy.report.fields import Count, ReportModel, Sha256, Text


def _check_file_name(name: str) -> str:
    """Manifests travel: a file name in one must not lead out of its folder."""
    if PurePath(name).name != name or name in ("", ".", "..") or "\0" in name or "\\" in name:
        raise ValueError(f"names a file {name!r} that is not in its folder")
    return name


def _check_listed(section: FileSection) -> None:
    if section.files.get(section.file) != section.sha256:
        raise ValueError(f"lists no SHA-256 of {section.file!r}, or another one under 'files'")


FileName = Annotated[str, AfterValidator(_check_file_name)]


class FileRecord(FileSection):
    """A file of the folder, listed with its own hash."""

    file: FileName
    files: dict[FileName, Sha256]

    @model_validator(mode="after")
    def _list_itself(self) -> FileRecord:
        _check_listed(self)
        return self


class TypedModelRecord(TypedModelSection):
    """The typed model, listed with its own hash."""

    file: FileName
    files: dict[FileName, Sha256]

    @model_validator(mode="after")
    def _list_itself(self) -> TypedModelRecord:
        _check_listed(self)
        return self


class OptimizationProfileRecord(OptimizationProfileEntry):
    """One optimization profile: sizes, and values of shape tensors, that grow from min to max."""

    values: dict[Text, PointTable]

    @field_validator("shapes", "values")
    @classmethod
    def _grow(cls, value: dict[str, PointTable]) -> dict[str, PointTable]:
        for name, table in value.items():
            if not len(table.min) == len(table.opt) == len(table.max):
                raise ValueError(f"{name!r}: min, opt and max have different lengths")
            rows = zip(table.min, table.opt, table.max, strict=True)
            if not all(low <= usual <= high for low, usual, high in rows):
                raise ValueError(f"{name!r}: min, opt and max are not in this order")
        return value

    @field_validator("shapes")
    @classmethod
    def _be_sizes(cls, value: dict[str, PointTable]) -> dict[str, PointTable]:
        for name, table in value.items():
            if any(size < 0 for size in table.min):
                raise ValueError(f"{name!r}: a size is negative")
        return value


class ProofRecord(ProofEntry):
    """How the precision was proven; said of every engine."""

    proven_by: Text
    layers: dict[Text, Count]


class CompileOptionsRecord(ReportModel):
    """What decides where the engine runs; the other options are for people."""

    compute_capabilities: tuple[Text, ...]
    hardware_compatibility: Text
    version_compatible: bool
    exclude_lean_runtime: bool


class CompileRequestRecord(ReportModel):
    """What the compiler was asked for."""

    module: Text
    recipe: Text
    low_dtype: Text
    optimization_profiles: tuple[OptimizationProfileRecord, ...]
    options: CompileOptionsRecord


class GpuRecord(ReportModel):
    """The GPU that compiled."""

    name: Text
    compute_capability: Text


class CompileRecord(CompileSection):
    """The compiler's part, with what whoever loads the engine compares."""

    precision: ProofRecord
    typed_model_sha256: Sha256
    request: CompileRequestRecord
    platform: Text
    gpu: GpuRecord | None


class DataRecord(ReportModel):
    """Sample inputs that were given, and a hash over their contents."""

    path: Text
    sha256: Sha256


class ManifestDocument(BuildReport):
    """A whole manifest.

    Attributes:
        key: Equal keys mean equal builds.
        pins: Patterns given with ``--pin``.
        data: Given with ``--calib`` and ``--data``.
    """

    key: Text
    typed_model: TypedModelRecord
    engine: FileRecord | None
    pins: tuple[Text, ...]
    data: tuple[DataRecord, ...] = ()
    optimization_profiles: tuple[OptimizationProfileRecord, ...]
    compile: CompileRecord | None

    @field_validator("engine")
    @classmethod
    def _fit_status(cls, value: FileRecord | None, info: ValidationInfo) -> FileRecord | None:
        status = info.data.get("status")
        if status is not None and (status == "engine") != (value is not None):
            raise ValueError(f"the status is {status!r}, which does not fit")
        return value

    @field_validator("optimization_profiles")
    @classmethod
    def _fit_inputs(
        cls, value: tuple[OptimizationProfileRecord, ...], info: ValidationInfo
    ) -> tuple[OptimizationProfileRecord, ...]:
        if not value:
            raise ValueError("there is none")
        source = info.data.get("source")
        if isinstance(source, SourceSection):
            for entry in value:
                _compare_inputs(entry, source)
        return value


def _compare_inputs(entry: OptimizationProfileRecord, source: SourceSection) -> None:
    inputs = {tensor.name: tensor.shape for tensor in source.inputs}
    if set(entry.shapes) != set(inputs):
        raise ValueError(f"is for {sorted(entry.shapes)}, and the inputs are {sorted(inputs)}")
    if not set(entry.values) <= set(inputs):
        raise ValueError(f"values are for {sorted(entry.values)}, which are not all inputs")
    for name, points in entry.shapes.items():
        shape = inputs[name]
        if shape is not None and len(shape) != len(points.min):
            raise ValueError(f"{name!r} has {len(points.min)} sizes, and the input {len(shape)}")
