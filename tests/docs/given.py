"""What a page expects its reader to bring: a model, pictures, texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from PIL import Image

from tests.building.models import save_convnet

_LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"


def save_photos(folder: Path, count: int = 6) -> None:
    """Write pictures of coloured noise, as a camera's would be called."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8))
        coarse.resize((320, 240)).save(folder / f"frame_{index:04}.jpg")


def save_sentences(path: Path, count: int = 32) -> None:
    """Write sentences of the licence, one a line: texts that nobody edits."""
    text = " ".join(_LICENCE.read_text(encoding="utf-8").split())
    sentences = [sentence for sentence in re.split(r"(?<=[.;:]) ", text) if len(sentence) > 40]
    path.write_text("\n".join(sentences[:count]) + "\n", encoding="utf-8")


def save_model_and_inputs(folder: Path) -> None:
    """Write a small network of images under the name of the reader's own, and samples for it."""
    save_convnet(folder / "yolov8n.onnx")
    images = np.random.default_rng(0).normal(0, 1, (8, 3, 64, 64)).astype(np.float32)
    np.savez(folder / "images.npz", images=images)


GIVEN: Final[dict[str, Callable[[Path], None]]] = {
    "README.md": save_model_and_inputs,
    "docs/quantization.md": lambda folder: save_photos(folder / "photos"),
    "docs/yolov8n-jetson-orin-nano.md": lambda folder: save_photos(folder / "photos"),
    "docs/bert-h100-fp8.md": lambda folder: save_sentences(folder / "texts.txt"),
}
"""By the page's name."""
