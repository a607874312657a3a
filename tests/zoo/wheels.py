"""A wheel made by hand, and a zoo that describes it."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import yaml

from trtdeploy.zoo.catalogue import load_zoo
from trtdeploy.zoo.entry import Zoo

CONTENT = {
    "small.onnx": b"a small model" * 100,
    "large.onnx": b"a large model" * 1000,
    "folder/config.json": b"{}",
    "folder/weights.bin": b"\1" * 5000,
}
WHEEL = "fakemodels-1.0-py3-none-any.whl"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_wheel(folder: Path, members: dict[str, bytes] | None = None) -> Path:
    path = folder / WHEEL
    info = "fakemodels-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: fakemodels\nVersion: 1.0\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (
            members or {f"fakemodels/{n}": c for n, c in CONTENT.items()}
        ).items():
            archive.writestr(zipfile.ZipInfo(name), content)
        archive.writestr(zipfile.ZipInfo(f"{info}/METADATA"), metadata)
        archive.writestr(
            zipfile.ZipInfo(f"{info}/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "")
    return path


def describe_file(name: str) -> dict[str, Any]:
    content = CONTENT[name]
    return {
        "path": name,
        "member": f"fakemodels/{name}",
        "bytes": len(content),
        "sha256": sha256(content),
    }


def describe_model(*names: str, **changes: Any) -> dict[str, Any]:
    return {
        "task": "nothing",
        "licence": "MIT",
        "wheel": "fake",
        "files": [describe_file(name) for name in names],
        "inputs": {"x": {"dtype": "float32", "shape": ["N", 4], "means": "numbers"}},
        "preprocessing": "none",
        **changes,
    }


def describe_zoo(wheel: Path) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "wheels": {
            "fake": {
                "package": "fakemodels",
                "version": "1.0",
                "file": WHEEL,
                "bytes": wheel.stat().st_size,
                "sha256": sha256(wheel.read_bytes()),
            }
        },
        "models": {
            "small": describe_model("small.onnx"),
            "large": describe_model("large.onnx"),
            "folder": describe_model(
                "folder/config.json", "folder/weights.bin", kind="transformers"
            ),
        },
    }


def save_zoo(path: Path, content: dict[str, Any]) -> Zoo:
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return load_zoo(path)
