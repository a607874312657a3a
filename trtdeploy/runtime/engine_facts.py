"""What a manifest says of its engine, as typed values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import Shape
from trtdeploy.pipeline.folder_files import format_rebuild, format_recompile


@dataclass(frozen=True)
class CompileFacts:
    """What was recorded when the engine was compiled.

    Attributes:
        backend: ``tensorrt`` or ``tensorrt_rtx``.
        version: TensorRT's version.
        recipe: Recipe it was compiled for.
        low_dtype: Label of the narrow type it must have; empty for none.
        layers: Layers per type that were found, by ``trt.DataType`` names.
        proven_by: How they were found.
        typed_model_sha256: Of the model it was compiled from.
        optimization_profiles: As compiled.
        options: ``CompileOptions`` as plain data.
        platform: E.g. ``Linux x86_64``.
        gpu_name: Of the GPU it was compiled on; empty for TensorRT-RTX, which needs none.
        compute_capability: Of that GPU; empty likewise.
    """

    backend: str
    version: str
    recipe: str
    low_dtype: str
    layers: Mapping[str, int]
    proven_by: str
    typed_model_sha256: str
    optimization_profiles: tuple[OptimizationProfile, ...]
    options: Mapping[str, Any]
    platform: str
    gpu_name: str
    compute_capability: str


@dataclass(frozen=True)
class EngineFacts:
    """What a manifest says as a whole.

    Attributes:
        folder: The output folder.
        status: ``engine`` or ``prepared``.
        backend: Of the deploy profile.
        deploy_profile: Its name.
        recipe: Of the deploy profile.
        planned_recipe: Of the precision plan.
        source: File name of the source model.
        typed_model: File name, and SHA-256 of each of its files.
        engine: The same for the engine; None in a prepared folder.
        engine_bytes: Its size.
        device_title: The device it is for.
        compute_capability: Of that device; empty for a CPU.
        optimization_profiles: Sizes it is for.
        inputs: Shape of each input, with symbolic names.
        outputs: The same for outputs.
        compiled: None where nothing was compiled (ONNX Runtime, prepared folders).
    """

    folder: Path
    status: str
    backend: str
    deploy_profile: str
    recipe: str
    planned_recipe: str
    source: str
    typed_model: tuple[str, Mapping[str, str]]
    engine: tuple[str, Mapping[str, str]] | None
    engine_bytes: int
    device_title: str
    compute_capability: str
    optimization_profiles: tuple[OptimizationProfile, ...]
    inputs: Mapping[str, Shape | None]
    outputs: Mapping[str, Shape | None]
    compiled: CompileFacts | None

    @property
    def recompile(self) -> str:
        """The command that compiles the typed model of the folder again."""
        return format_recompile(self.folder)

    @property
    def rebuild(self) -> str:
        """The command that makes the folder again from the source model."""
        return format_rebuild(self.folder, self.source, self.deploy_profile)


def read_engine_facts(folder: Path, manifest: Mapping[str, Any]) -> EngineFacts:
    """Return a manifest's facts.

    Args:
        folder: Where it lies.
        manifest: As ``load_manifest`` returned it, which has checked every field.
    """
    chosen, device = manifest["profile"]["profile"], manifest["profile"]["device"]
    engine, compiled = manifest["engine"], manifest["compile"]
    return EngineFacts(
        folder=folder,
        status=manifest["status"],
        backend=chosen["backend"],
        deploy_profile=chosen["name"],
        recipe=chosen["recipe"],
        planned_recipe=manifest["precision"]["recipe"],
        source=manifest["source"]["file"],
        typed_model=_read_files(manifest["typed_model"]),
        engine=None if engine is None else _read_files(engine),
        engine_bytes=0 if engine is None else engine["bytes"],
        device_title=device["title"],
        compute_capability=device.get("compute_capability") or "",
        optimization_profiles=_read_profiles(manifest["optimization_profiles"]),
        inputs=_read_shapes(manifest["source"]["inputs"]),
        outputs=_read_shapes(manifest["source"]["outputs"]),
        compiled=None if compiled is None else _read_compiled(compiled),
    )


def _read_compiled(compiled: Mapping[str, Any]) -> CompileFacts:
    request, proof, gpu = compiled["request"], compiled["precision"], compiled["gpu"]
    return CompileFacts(
        backend=request["module"],
        version=compiled["version"],
        recipe=request["recipe"],
        low_dtype=request["low_dtype"],
        layers=proof["layers"],
        proven_by=proof["proven_by"],
        typed_model_sha256=compiled["typed_model_sha256"],
        optimization_profiles=_read_profiles(request["optimization_profiles"]),
        options=request["options"],
        platform=compiled["platform"],
        gpu_name="" if gpu is None else gpu["name"],
        compute_capability="" if gpu is None else gpu["compute_capability"],
    )


def _read_files(entry: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    return entry["file"], entry["files"]


def _read_profiles(entries: Sequence[Mapping[str, Any]]) -> tuple[OptimizationProfile, ...]:
    return tuple(OptimizationProfile.from_dict(entry) for entry in entries)


def _read_shapes(entries: Sequence[Mapping[str, Any]]) -> dict[str, Shape | None]:
    return {
        entry["name"]: None if entry["shape"] is None else tuple(entry["shape"])
        for entry in entries
    }
