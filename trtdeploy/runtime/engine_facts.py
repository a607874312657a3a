"""What a manifest says of its engine, as typed values; a damaged one is an error, not a bug."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from trtdeploy.core.errors import EngineFileError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import Shape

_Kind = TypeVar("_Kind")


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
        return f"trtdeploy build {shlex.quote(str(self.folder))} --rebuild"

    @property
    def rebuild(self) -> str:
        """The command that makes the folder again from the source model."""
        source, profile = shlex.quote(self.source), shlex.quote(self.deploy_profile)
        place = shlex.quote(str(self.folder))
        return f"trtdeploy build {source} --profile {profile} --output-dir {place} --rebuild"


def read_engine_facts(folder: Path, manifest: Mapping[str, Any]) -> EngineFacts:
    """Return a manifest's facts.

    Args:
        folder: Where it lies.
        manifest: As ``load_manifest`` returned it.

    Raises:
        EngineFileError: A part is missing or of the wrong kind.
    """
    reader = _Reader(folder, manifest)
    engine = manifest.get("engine")
    return EngineFacts(
        folder=folder,
        status=reader.find("status", str),
        backend=reader.find("profile.profile.backend", str),
        deploy_profile=reader.find("profile.profile.name", str),
        recipe=reader.find("profile.profile.recipe", str),
        planned_recipe=reader.find("precision.recipe", str),
        source=reader.find("source.file", str),
        typed_model=reader.find_files("typed_model"),
        engine=reader.find_files("engine") if engine is not None else None,
        engine_bytes=reader.find("engine.bytes", int) if engine is not None else 0,
        device_title=reader.find("profile.device.title", str),
        compute_capability=reader.find_text("profile.device", "compute_capability"),
        optimization_profiles=reader.find_profiles("optimization_profiles"),
        inputs=reader.find_shapes("source.inputs"),
        outputs=reader.find_shapes("source.outputs"),
        compiled=_read_compiled(reader) if manifest.get("compile") is not None else None,
    )


def _read_compiled(reader: _Reader) -> CompileFacts:
    gpu = "compile.gpu" if reader.find("compile", dict).get("gpu") is not None else None
    return CompileFacts(
        backend=reader.find("compile.request.module", str),
        version=reader.find("compile.version", str),
        recipe=reader.find("compile.request.recipe", str),
        low_dtype=reader.find("compile.request.low_dtype", str),
        layers=reader.find("compile.precision.layers", dict),
        proven_by=reader.find("compile.precision.proven_by", str),
        typed_model_sha256=reader.find("compile.typed_model_sha256", str),
        optimization_profiles=reader.find_profiles("compile.request.optimization_profiles"),
        options=reader.find("compile.request.options", dict),
        platform=reader.find("compile.platform", str),
        gpu_name=reader.find(f"{gpu}.name", str) if gpu else "",
        compute_capability=reader.find(f"{gpu}.compute_capability", str) if gpu else "",
    )


class _Reader:
    """Looks entries up by dotted names."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._path = folder / "manifest.json"
        self._manifest = manifest

    def find(self, name: str, kind: type[_Kind]) -> _Kind:
        """Return an entry of a manifest."""
        entry: Any = self._manifest
        for key in name.split("."):
            entry = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(entry, kind):
            raise self._complain(f"{name!r} is missing or not a {kind.__name__}")
        return entry

    def find_text(self, section: str, key: str) -> str:
        """Return a text that may be null, as an empty one then."""
        found = self.find(section, dict).get(key)
        return "" if found is None else self.find(f"{section}.{key}", str)

    def find_files(self, name: str) -> tuple[str, dict[str, str]]:
        """Return the main file of an entry, and the SHA-256 of every file."""
        main, files = self.find(f"{name}.file", str), self.find(f"{name}.files", dict)
        if main not in files or not all(isinstance(value, str) for value in files.values()):
            raise self._complain(f"{name!r} lists no SHA-256 of {main!r}")
        return main, files

    def find_profiles(self, name: str) -> tuple[OptimizationProfile, ...]:
        """Return optimization profiles."""
        try:
            return tuple(OptimizationProfile.from_dict(data) for data in self.find(name, list))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._complain(f"{name!r} cannot be read ({error})") from error

    def find_shapes(self, name: str) -> dict[str, Shape | None]:
        """Return shapes by tensor name."""
        try:
            return {
                str(entry["name"]): None if entry["shape"] is None else tuple(entry["shape"])
                for entry in self.find(name, list)
            }
        except (KeyError, TypeError) as error:
            raise self._complain(f"{name!r} cannot be read ({error})") from error

    def _complain(self, problem: str) -> EngineFileError:
        return EngineFileError(
            f"{self._path}: {problem}; without it the engine cannot be checked, and it is not "
            "loaded",
            hint="It is damaged, or from an earlier trtdeploy: build the folder again.",
        )
