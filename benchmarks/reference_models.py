"""Models made in code: ``python -m benchmarks.reference_models NAME FILE``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import onnx

from benchmarks.big_model import write_big_model
from benchmarks.resnet import build_resnet50
from benchmarks.yolo import build_yolov8n


def _write_resnet50(path: Path) -> None:
    onnx.save_model(build_resnet50(), path)


def _write_yolov8n(path: Path) -> None:
    onnx.save_model(build_yolov8n(), path)


def _write_big(path: Path) -> None:
    write_big_model(path)


WRITERS: dict[str, Callable[[Path], None]] = {
    "yolov8n-like": _write_yolov8n,
    "resnet50": _write_resnet50,
    "big-4gib": _write_big,
}


def main() -> None:
    """Write one model to a file."""
    parser = argparse.ArgumentParser(description="Write a reference model.")
    parser.add_argument("name", choices=WRITERS)
    parser.add_argument("path", type=Path)
    arguments = parser.parse_args()
    WRITERS[arguments.name](arguments.path)


if __name__ == "__main__":
    main()
