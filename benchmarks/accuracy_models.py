"""Models, real-looking data and the task figure of each: what quantized accuracy is measured on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.real_data import (
    Images,
    Split,
    collect_sentences,
    crop_photos,
    draw_lines,
    draw_pages,
    list_files,
    read_edges,
)
from benchmarks.wordpiece import WordPieceTokenizer
from trtdeploy.graph.loading import load_model

Array = npt.NDArray[Any]
Arrays = Mapping[str, Array]
"""One array per input or output, samples along the first axis."""
TaskFigure = Callable[[Arrays, Arrays, Arrays], Mapping[str, float]]
"""From feeds, reference outputs and candidate outputs to figures, 1 being perfect."""

SEED = 20
_TEXT_PIXELS = 0.3
"""Probability from which PP-OCR takes a pixel for text."""
_SENTENCE_TOKENS = 64
_IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


@dataclass(frozen=True)
class AccuracyModel:
    """A model with its data.

    Attributes:
        name: As shown in tables.
        path: The FP32 ONNX file.
        make_samples: Gives the feeds of one split, so many samples.
        measure_task: What the outputs are used for, compared.
        calibrating: Samples to calibrate with.
        evaluating: Samples to evaluate on.
    """

    name: str
    path: Path
    make_samples: Callable[[int, Split], Arrays]
    measure_task: TaskFigure
    calibrating: int
    evaluating: int


def list_models(
    zoo: Path, images: Path | None, networks: Mapping[str, Path], seed: int = SEED
) -> list[AccuracyModel]:
    """Return every model whose file is there.

    Args:
        zoo: Folder that ``trtdeploy models fetch`` filled.
        images: Folder of photographs, for ``networks``; two at least.
        networks: Further models with one input of images, by name.
        seed: Chooses the samples.
    """
    pages, lines, edges, sentences = (
        partial(make, seed) for make in (_make_pages, _make_lines, _make_edges, _make_sentences)
    )
    wide = partial(lines, width=320)
    lines_file = zoo / "ch_ppocr_mobile_v2.0_cls_mobile.onnx"
    words = partial(sentences, zoo / "all-minilm-l6-v2" / "vocab.txt")
    known = [
        AccuracyModel("pp-ocrv6-det", zoo / "PP-OCRv6_det_small.onnx", pages, compare_maps, 32, 16),
        AccuracyModel("pp-ocrv6-rec", zoo / "PP-OCRv6_rec_small.onnx", wide, compare_top1, 32, 64),
        AccuracyModel("ppocr-cls", lines_file, lines, compare_top1, 64, 200),
        AccuracyModel("magika", zoo / "magika.onnx", edges, compare_top1, 100, 200),
        AccuracyModel("minilm", zoo / "minilm.onnx", words, compare_similarity, 64, 64),
    ]
    if images is not None:
        known += [_make_network(name, path, images, seed) for name, path in networks.items()]
    return [model for model in known if model.path.is_file()]


def _make_network(name: str, path: Path, images: Path, seed: int) -> AccuracyModel:
    detects = "yolo" in name
    photos = _Photos(path, images, 640 if detects else 224, seed, normalize=not detects)
    count = (16, 8) if detects else (32, 64)
    return AccuracyModel(name, path, photos, compare_nothing if detects else compare_top1, *count)


def compare_top1(_feeds: Arrays, reference: Arrays, candidate: Arrays) -> dict[str, float]:
    """Return the share of samples with the same best class."""
    name = next(iter(reference))
    same = reference[name].argmax(axis=-1) == candidate[name].argmax(axis=-1)
    return {"top-1 agreement": float(same.mean())}


def compare_maps(_feeds: Arrays, reference: Arrays, candidate: Arrays) -> dict[str, float]:
    """Return how far the pixels taken for text are the same: intersection over union."""
    name = next(iter(reference))
    first, second = reference[name] > _TEXT_PIXELS, candidate[name] > _TEXT_PIXELS
    return {"text pixels IoU": float((first & second).sum() / max((first | second).sum(), 1))}


def compare_similarity(feeds: Arrays, reference: Arrays, candidate: Arrays) -> dict[str, float]:
    """Return Spearman's rank correlation of the cosine similarities of all pairs of sentences.

    Sentence vectors are means over tokens, as the model was trained (N. Reimers and I. Gurevych,
    Sentence-BERT, 2019, section 3).
    """
    mask = feeds["attention_mask"]
    pairs = np.triu_indices(len(mask), 1)
    first, second = (
        _embed(outputs["last_hidden_state"], mask) for outputs in (reference, candidate)
    )
    found = [(vectors @ vectors.T)[pairs] for vectors in (first, second)]
    return {"similarity Spearman": correlate_ranks(*found)}


def compare_nothing(_feeds: Arrays, _reference: Arrays, _candidate: Arrays) -> dict[str, float]:
    """Return no figure: random weights have no task."""
    return {}


def correlate_ranks(first: Array, second: Array) -> float:
    """Return Spearman's rank correlation; ties are taken in order."""
    ranks = [np.argsort(np.argsort(values)).astype(np.float64) for values in (first, second)]
    return float(np.corrcoef(*ranks)[0, 1])


def _embed(states: Array, mask: Array) -> Array:
    weights = mask[..., np.newaxis].astype(np.float64)
    vectors = (states * weights).sum(axis=1) / weights.sum(axis=1)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def _make_pages(seed: int, count: int, split: Split) -> Arrays:
    pages = draw_pages(count, 320, 320, seed, split)
    return {"x": _to_planes(pages[..., ::-1], (0.5,) * 3, (0.5,) * 3)}


def _make_lines(seed: int, count: int, split: Split, *, width: int = 192) -> Arrays:
    lines, _ = draw_lines(count, 48, width, seed, split)
    return {"x": _to_planes(lines[..., ::-1], (0.5,) * 3, (0.5,) * 3)}


def _make_edges(seed: int, count: int, split: Split) -> Arrays:
    return {"bytes": np.stack([read_edges(path) for path in list_files(count, seed, split)])}


def _make_sentences(seed: int, words: Path, count: int, split: Split) -> Arrays:
    sentences = collect_sentences(count, seed, split)
    return WordPieceTokenizer(words).encode(sentences, _SENTENCE_TOKENS)


@dataclass(frozen=True)
class _Photos:
    """Feeds of a network with one input of images."""

    path: Path
    images: Path
    size: int
    seed: int
    normalize: bool

    def __call__(self, count: int, split: Split) -> Arrays:
        mean, deviation = _IMAGENET if self.normalize else ((0.0,) * 3, (1.0,) * 3)
        name = load_model(self.path).input_specs()[0].name
        photos = crop_photos(self.images, count, self.size, self.seed, split)
        return {name: _to_planes(photos, mean, deviation)}


def _to_planes(images: Images, mean: tuple[float, ...], deviation: tuple[float, ...]) -> Array:
    values = (images / np.float32(255) - np.float32(mean)) / np.float32(deviation)
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2), np.float32)
