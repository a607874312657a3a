"""Small models and data under the names that the pages use for large ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto
from PIL import Image

from tests.builders import INT64, constant, in_memory, model, op, random_array, save, value
from tests.pipeline.models import save_convnet
from trtdeploy.core.tensors import SizeRule
from trtdeploy.graph.export_facts import write_export_facts

_WIDTH, _WORDS = 32, 1000
_LICENCE = Path(__file__).resolve().parents[2] / "LICENSE"


def make_detector(name: str = "images") -> ModelProto:
    """Make five convolutions of stride 2 and boxes: batch x 12 x places, multiples of 32."""
    nodes: list[NodeProto] = []
    weights: list[TensorProto] = []
    current, channels = name, 3
    for level, width in enumerate((8, 16, 32, 32, 32)):
        scale = float((2 / (9 * channels)) ** 0.5)
        weights.append(constant(f"w{level}", random_array(width, channels, 3, 3, scale=scale)))
        convolution = op(
            "Conv", f"{current} w{level}", f"c{level}", strides=[2, 2], pads=[1, 1, 1, 1]
        )
        nodes += [convolution, op("Relu", f"c{level}", f"r{level}")]
        current, channels = f"r{level}", width
    weights.append(constant("w_boxes", random_array(12, channels, 1, 1, scale=0.2)))
    weights.append(constant("target", [0, 12, -1], np.int64))
    nodes += [op("Conv", f"{current} w_boxes", "boxes"), op("Reshape", "boxes target", "output")]
    shape = ("batch", 3, "height", "width")
    made = model(nodes, [value(name, shape)], [value("output", ("batch", 12, "n"))], weights)
    write_export_facts(
        in_memory(made), [SizeRule(symbol, 32, 32) for symbol in ("height", "width")]
    )
    return made


def make_encoder() -> ModelProto:
    """Make one layer of BERT over embedded tokens: batch x sequence x 32."""
    width = _WIDTH
    shapes = {
        "table": (_WORDS, width), "wq": (width, width), "wk": (width, width), "wv": (width, width),
        "w_up": (width, 2 * width), "w_down": (2 * width, width),
    }  # fmt: skip
    weights = [
        constant(name, random_array(*shape, seed=seed, scale=width**-0.5))
        for seed, (name, shape) in enumerate(shapes.items())
    ]
    weights += [
        constant("one", 1.0), constant("low", -1e4), constant("scale", width**-0.5),
        constant("axis", [1], np.int64), constant("gain", np.ones(width)),
        constant("shift", np.zeros(width)),
    ]  # fmt: skip
    nodes = [
        op("Gather", "table input_ids", "h"),
        *(op("MatMul", f"h w{part}", part) for part in "qkv"),
        op("Transpose", "k", "kt", perm=[0, 2, 1]),
        op("MatMul", "q kt", "raw"),
        op("Mul", "raw scale", "scores"),
        op("Cast", "attention_mask", "mask", to=TensorProto.FLOAT),
        op("Sub", "one mask", "padding"),
        op("Mul", "padding low", "lowered"),
        op("Unsqueeze", "lowered axis", "bias"),
        op("Add", "scores bias", "masked"),
        op("Softmax", "masked", "weights", axis=-1),
        op("MatMul", "weights v", "attended"),
        op("Add", "attended h", "sum"),
        op("LayerNormalization", "sum gain shift", "normed"),
        op("MatMul", "normed w_up", "up"),
        op("Relu", "up", "active"),
        op("MatMul", "active w_down", "down"),
        op("Add", "down normed", "last"),
        op("LayerNormalization", "last gain shift", "last_hidden_state"),
    ]
    shape = ("batch", "sequence")
    inputs = [value(name, shape, INT64) for name in ("input_ids", "attention_mask")]
    return model(nodes, inputs, [value("last_hidden_state", (*shape, width))], weights)


def save_photos(folder: Path, count: int = 6) -> None:
    """Write pictures of coloured noise, as a camera's would be called."""
    rng = np.random.default_rng(0)
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3)).astype(np.uint8))
        coarse.resize((320, 240)).save(folder / f"frame_{index:04}.jpg")


def _save_for_readme(folder: Path) -> None:
    save_convnet(folder / "yolov8n.onnx")
    images = np.random.default_rng(0).normal(0, 1, (8, 3, 64, 64)).astype(np.float32)
    np.savez(folder / "images.npz", images=images)


def _save_detector(folder: Path) -> None:
    save(make_detector(), folder / "yolov8n.onnx")


def _save_text_detector(folder: Path) -> None:
    save(make_detector("x"), folder / "PP-OCRv6_det_small.onnx")


def _save_encoder(folder: Path) -> None:
    save(make_encoder(), folder / "minilm.onnx")
    rng = np.random.default_rng(0)
    lengths = rng.integers(4, 24, (16, 1), endpoint=True)
    mask = (np.arange(24)[None] < lengths).astype(np.int64)
    ids = rng.integers(0, _WORDS, mask.shape) * mask
    np.savez(folder / "sentences.npz", input_ids=ids, attention_mask=mask)


def _save_fixed_classifier(folder: Path) -> None:
    nodes = [
        op("Conv", "images w", "c"),
        op("Relu", "c", "r"),
        op("GlobalAveragePool", "r", "p"),
        op("Flatten", "p", "f"),
        op("Gemm", "f w_fc", "linear"),
    ]
    weights = [
        constant("w", random_array(8, 3, 3, 3, scale=0.3)),
        constant("w_fc", random_array(8, 10, scale=0.3)),
    ]
    made = model(nodes, [value("images", (1, 3, 64, 64))], [value("linear", (1, 10))], weights)
    save(made, folder / "sources" / "small_classifier_batch1.onnx")


def save_sentences(path: Path, count: int = 32) -> None:
    """Write sentences of the licence, one a line: texts that nobody edits."""
    text = " ".join(_LICENCE.read_text(encoding="utf-8").split())
    sentences = [sentence for sentence in re.split(r"(?<=[.;:]) ", text) if len(sentence) > 40]
    path.write_text("\n".join(sentences[:count]) + "\n", encoding="utf-8")


STAND_INS: Final[dict[str, Callable[[Path], None]]] = {
    "README.md": _save_for_readme,
    "docs/quantization.md": _save_for_readme,
    "docs/yolov8n-jetson-orin-nano.md": _save_detector,
    "docs/bert-h100-fp8.md": _save_encoder,
    "docs/your-own-device.md": _save_text_detector,
    "docs/parity-gate-in-ci.md": _save_text_detector,
    "docs/export.md": _save_fixed_classifier,
}
"""Writes what a page's skipped commands would have made, by the page's name."""

GIVEN: Final[dict[str, Callable[[Path], None]]] = {
    "docs/yolov8n-jetson-orin-nano.md": lambda folder: save_photos(folder / "photos"),
    "docs/bert-h100-fp8.md": lambda folder: save_sentences(folder / "texts.txt"),
}
"""Writes what a page expects its reader to bring."""
