"""Output folders as ``trtdeploy build`` writes them, made in an instant and damaged on purpose."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trtdeploy
from tests.backends.fake_device_memory import FakeDeviceMemory
from tests.contract.session_cases import ScriptedEngine
from tests.contract.standin import StandinModule, make_trt_module
from trtdeploy.core.errors import TrtdeployError

Change = Callable[[dict[str, Any]], None]
Use = Callable[["Machine"], "Machine"]
"""Makes this process believe that it runs on a machine."""
TAGS = {"tensorrt": b"ftrt", "tensorrt_rtx": b"vtrt"}
PROFILE = {
    "name": "default",
    "shapes": {"x": {"min": [1, 3], "opt": [2, 3], "max": [4, 3]}},
    "values": {},
}
MODEL = b"a typed model"


def make_plan(version: tuple[int, ...], tag: bytes = b"ftrt", size_bytes: int = 200) -> bytes:
    """Return bytes that begin as a plan of that version does."""
    parts = [*(part % 256 for part in version), 0, 0, 0, 0][:4]
    return (tag + bytes(20) + bytes(parts)).ljust(size_bytes, b"\x5a")


@dataclass
class Folder:
    """One output folder.

    Attributes:
        path: Where it is.
        backend: ``tensorrt`` or ``tensorrt_rtx``.
        version: Of the TensorRT that "compiled" the engine.
        compute_capability: What it was compiled for.
    """

    path: Path
    backend: str = "tensorrt"
    version: str = "10.3.0"
    compute_capability: str = "8.9"
    options: dict[str, Any] = field(default_factory=dict)

    def write(self) -> Folder:
        """Write model, engine and manifest."""
        numbers = tuple(int(part) for part in self.version.split(".") if part.isdigit())
        plan = make_plan(numbers, TAGS[self.backend])
        self.path.mkdir(parents=True)
        (self.path / "model.onnx").write_bytes(MODEL)
        (self.path / "model.engine").write_bytes(plan)
        manifest = self._describe(plan)
        (self.path / "manifest.json").write_text(json.dumps(manifest))
        return self

    def change(self, change: Change) -> None:
        """Edit the manifest."""
        path = self.path / "manifest.json"
        manifest = json.loads(path.read_text())
        change(manifest)
        path.write_text(json.dumps(manifest))

    @property
    def engine(self) -> Path:
        """The engine file."""
        return self.path / "model.engine"

    def _describe(self, plan: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(plan).hexdigest()
        model = hashlib.sha256(MODEL).hexdigest()
        tensor = {"dtype": "float32", "shape": ["batch", 3], "is_shape_tensor": False}
        is_rtx = self.backend == "tensorrt_rtx"
        names = [self.compute_capability] if is_rtx else []
        gpu = {"name": "Fake GPU", "compute_capability": self.compute_capability}
        return {
            "schema_version": 2,
            "status": "engine",
            "created": "2026-01-31T12:00:00+00:00",
            "key": "2" * 64,
            "pins": [],
            "source": {
                "file": "net.onnx",
                "sha256": "0" * 64,
                "opset": 17,
                "ir_version": 8,
                "nodes": 3,
                "inputs": [{"name": "x", **tensor}],
                "outputs": [{"name": "y", **tensor}],
            },
            "typed_model": {
                "file": "model.onnx",
                "bytes": len(MODEL),
                "sha256": model,
                "files": {"model.onnx": model},
                "opset": 17,
                "ir_version": 8,
                "changes": [],
            },
            "engine": {
                "file": "model.engine",
                "bytes": len(plan),
                "sha256": digest,
                "files": {"model.engine": digest},
            },
            "profile": {
                "profile": {
                    "name": "fake-fp16",
                    "device": "fake",
                    "backend": self.backend,
                    "recipe": "fp16",
                },
                "device": {
                    "name": "fake",
                    "title": "Fake device",
                    "kind": "geforce",
                    "compute_capability": self.compute_capability,
                },
                "source": "fake-fp16.yaml",
            },
            "optimization_profiles": [PROFILE],
            "shape_notes": [],
            "precision": {
                "recipe": "fp16", "counts": {}, "nodes": {}, "constants": [], "notes": [],
            },
            "check": {
                "model": "net.onnx", "opset": 17, "ir_version": 8, "node_count": 3,
                "backend": self.backend, "engine": "an engine", "recipe": "fp16",
                "device": "Fake device", "asked": "nobody", "counts": {}, "findings": [],
            },
            "steps": [],
            "environment": {
                "trtdeploy": "0", "python": "3", "platform": "Linux x86_64", "packages": {},
            },
            "compile": {
                "backend": self.backend,
                "version": self.version,
                "typing": "strong",
                "flags": [],
                "precision": {"proven_by": "engine inspector", "layers": {"HALF": 3}},
                "warnings": [],
                "parse_s": 0.0,
                "build_s": 0.0,
                "typed_model_sha256": model,
                "request": {
                    "module": self.backend,
                    "recipe": "fp16",
                    "low_dtype": "float16",
                    "optimization_profiles": [PROFILE],
                },
                "options": {"compute_capabilities": names, **self.options},
                "platform": "Linux x86_64",
                "gpu": None if is_rtx else gpu,
            },
        }  # fmt: skip


@dataclass
class Machine:
    """The machine a folder is loaded on: its TensorRT and its GPU, both without hardware."""

    trt: StandinModule
    memory: FakeDeviceMemory

    def was_deserialised(self) -> bool:
        """Tell whether TensorRT saw a plan."""
        return bool(self.trt.calls.select("Runtime", "deserialize_cuda_engine"))


def make_machine(version: str, memory: FakeDeviceMemory | None = None) -> Machine:
    """Return a machine with one of the recorded TensorRTs; its engine doubles ``x``."""
    trt = make_trt_module(version)
    ScriptedEngine().install(trt)
    return Machine(trt, memory or FakeDeviceMemory())


def put(dotted: str, entry: Any) -> Change:
    """Return the change that sets one entry of a manifest."""
    *path, last = dotted.split(".")

    def change(manifest: dict[str, Any]) -> None:
        place: Any = manifest
        for key in path:
            place = place[key]
        place[last] = entry

    return change


def refuse(folder: Folder, machine: Machine, **arguments: Any) -> TrtdeployError:
    """Load, expect a refusal, and make sure that TensorRT saw nothing."""
    with pytest.raises(TrtdeployError) as info:
        trtdeploy.load(folder.path, **arguments)
    assert not machine.was_deserialised()
    assert info.value.hint
    return info.value
