"""Which models there are to run on, and where each comes from."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.processes import Command, measure_process

BUILT = ("yolov8n-like", "resnet50")
BIG = "big-4gib"
_DOWNLOADS = ROOT / "models" / "downloads"
_SHAPES: dict[str, dict[str, list[int]]] = {
    "yolov8n-like": {"images": [1, 3, 640, 640]},
    "resnet50": {"input": [1, 3, 224, 224]},
    "pp-ocrv6-det": {"x": [1, 3, 160, 160]},
    "pp-ocrv6-rec": {"x": [1, 3, 48, 320]},
    "ppocr-cls": {"x": [1, 3, 48, 192]},
    "magika": {"bytes": [1, 2048]},
    "silero-vad-16k": {"input": [1, 576], "state": [2, 1, 128]},
    "silero-vad": {"input": [1, 576], "state": [2, 1, 128]},
}


class UnknownModelError(Exception):
    """A model of that name does not exist."""


@dataclass(frozen=True)
class Model:
    """A model to convert or build.

    Attributes:
        name: As shown in tables.
        path: The ONNX file.
        shapes: Dims of the inputs for the comparison of outputs; empty for derived ones.
    """

    name: str
    path: Path
    shapes: dict[str, list[int]] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and size."""
        data_path = self.path.with_name(self.path.name + ".data")
        size = sum(path.stat().st_size for path in (self.path, data_path) if path.exists())
        return f"{self.name} ({size / 1e6:.1f} MB)"


def list_names() -> tuple[str, ...]:
    """Return the names of all models, whether they are here or not."""
    return (*BUILT, *_read_zoo())


def list_present() -> tuple[str, ...]:
    """Return the names of the models that need no download."""
    present = [name for name, file in _read_zoo().items() if (_DOWNLOADS / file).is_file()]
    return (*BUILT, *present)


def fetch_zoo(progress: Callable[[str], None]) -> None:
    """Download every zoo model that is not here yet.

    Raises:
        subprocess.CalledProcessError: The download failed.
    """
    progress("fetching the zoo models")
    fetch = ("models", "fetch", *_read_zoo(), "--output-dir", _DOWNLOADS)
    command: Command = [sys.executable, "-m", "trtdeploy", *fetch]
    subprocess.run(command, check=True, stdout=sys.stderr, cwd=ROOT)


def provide(name: str, python: Path, folder: Path) -> Model:
    """Return the model called ``name``, or the file of that name.

    Args:
        name: One of ``list_names``, ``BIG``, or the path of an ONNX file.
        python: Of an environment with onnx and numpy, which makes the models.
        folder: Where made models go.

    Raises:
        UnknownModelError: It is neither, or a zoo model that has not been fetched.
    """
    if name in (*BUILT, BIG):
        path = folder / f"{name}.onnx"
        command: Command = [python, "-m", "benchmarks.reference_models", name, path]
        done = measure_process(command, folder=ROOT)
        if done.failed:
            raise UnknownModelError(f"{name} could not be made: {done.reason}")
        return Model(name, path, _SHAPES.get(name, {}))
    zoo = _read_zoo()
    if name in zoo:
        path = _DOWNLOADS / zoo[name]
        if not path.is_file():
            raise UnknownModelError(f"{name} is not here yet; add --fetch")
        return Model(name, path, _SHAPES.get(name, {}))
    if Path(name).is_file():
        return Model(Path(name).name, Path(name).resolve())
    known = ", ".join(list_names())
    raise UnknownModelError(f"there is no model or file {name!r}; models: {known}")


def parse_shapes(texts: Iterable[str]) -> dict[str, list[int]]:
    """Return dims by input name from texts like ``images:1x3x640x640``.

    Raises:
        ValueError: A text has another form.
    """
    shapes = {}
    for text in texts:
        name, separator, dims = text.rpartition(":")
        if not separator:
            raise ValueError(f"{text!r} should look like images:1x3x640x640")
        shapes[name] = [int(dim) for dim in dims.split("x")]
    return shapes


def _read_zoo() -> dict[str, str]:
    # --help of these scripts runs on a Python without packages
    from trtdeploy.zoo.catalogue import load_zoo

    models = load_zoo(ROOT / "models" / "zoo.yaml").models
    return {name: model.root for name, model in models.items() if model.kind == "onnx"}
