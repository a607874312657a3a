"""Real-looking inputs without a download: drawn text, files, docstrings, photographs.

Every function takes a seed, and ``split`` parts what calibrates from what evaluates: the two never
share a sample.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
import sysconfig
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from trtdeploy.samples.images import IMAGE_FORMATS

Split = Literal["calibrate", "evaluate"]
Images = npt.NDArray[np.uint8]
"""Images x height x width x 3, RGB."""

_LEAST_FILE_BYTES = 64
_BLOCK_BYTES, _EDGE_BYTES, _PADDING = 4096, 1024, 256
_LEAST_WORDS, _MOST_WORDS = 5, 40
_FILE_ROOTS = (sysconfig.get_path("stdlib"), "/etc", "/usr/share", "/usr/lib", "/usr/bin")
_MOST_FILES_PER_ROOT = 5000
_LEAST_FILES_PER_KIND, _MOST_FILES_PER_KIND = 4, 400
_UPRIGHT_SHARE = 0.5


def make_generator(seed: int, split: Split) -> np.random.Generator:
    """Return the random numbers of one split."""
    return np.random.default_rng([seed, split == "evaluate"])


def collect_sentences(count: int, seed: int, split: Split) -> list[str]:
    """Return English sentences from the docstrings of Python's own library."""
    found = _list_sentences()
    order = np.random.default_rng(seed).permutation(len(found))
    return [found[i] for i in order[split == "evaluate" :: 2][:count]]


def draw_pages(count: int, height: int, width: int, seed: int, split: Split) -> Images:
    """Return pictures with lines of text in several sizes, colours and backgrounds."""
    rng = make_generator(seed, split)
    lines = collect_sentences(400, seed, split)
    return np.stack([_draw_page(lines, height, width, rng) for _ in range(count)])


def draw_lines(
    count: int, height: int, width: int, seed: int, split: Split
) -> tuple[Images, npt.NDArray[np.int64]]:
    """Return single lines of text, and 1 for each that stands on its head, else 0."""
    rng = make_generator(seed, split)
    lines = collect_sentences(400, seed, split)
    labels = (rng.random(count) > _UPRIGHT_SHARE).astype(np.int64)
    images = [_draw_line(str(rng.choice(lines)), height, width, rng) for _ in range(count)]
    pairs = zip(images, labels, strict=True)
    turned = [image[::-1, ::-1] if label else image for image, label in pairs]
    return np.stack(turned), labels


def list_files(count: int, seed: int, split: Split) -> list[Path]:
    """Return files of this machine, of as many kinds (suffixes) as are not rare."""
    rng = np.random.default_rng(seed)
    shuffled = [[found[i] for i in rng.permutation(len(found))] for found in _list_kinds()]
    mixed = [path for row in zip_longest(*shuffled) for path in row if path is not None]
    return mixed[split == "evaluate" :: 2][:count]


def read_edges(path: Path) -> npt.NDArray[np.int32]:
    """Return what magika 1.0 looks at: the first and the last 1024 bytes, 2048 numbers in all.

    Of the first and the last 4096 bytes, white space is stripped at the outer end; what is missing
    is 256.
    """
    with path.open("rb") as file:
        head = file.read(_BLOCK_BYTES).lstrip()[:_EDGE_BYTES]
        file.seek(max(path.stat().st_size - _BLOCK_BYTES, 0))
        tail = file.read(_BLOCK_BYTES).rstrip()[-_EDGE_BYTES:]
    edges = np.full(2 * _EDGE_BYTES, _PADDING, np.int32)
    edges[: len(head)] = list(head)
    edges[len(edges) - len(tail) :] = list(tail)
    return edges


def crop_photos(folder: Path, count: int, size: int, seed: int, split: Split) -> Images:
    """Return square pieces of photographs; either split has photographs of its own.

    Raises:
        ValueError: There are fewer than two images in the folder.
    """
    rng = make_generator(seed, split)
    paths = sorted(p for p in folder.iterdir() if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    chosen = paths[split == "evaluate" :: 2]
    if not chosen:
        raise ValueError(f"{folder} needs two images or more, one for either split")
    return np.stack([_crop(chosen[i % len(chosen)], size, rng) for i in range(count)])


def _crop(path: Path, size: int, rng: np.random.Generator) -> Images:
    with Image.open(path, formats=IMAGE_FORMATS) as opened:
        image = opened.convert("RGB")
    side = int(min(image.size) * rng.uniform(0.5, 1.0))
    left = int(rng.integers(image.width - side + 1))
    top = int(rng.integers(image.height - side + 1))
    piece = image.crop((left, top, left + side, top + side)).resize((size, size))
    pixels = np.asarray(piece)
    return pixels[:, ::-1] if rng.random() > _UPRIGHT_SHARE else pixels


def _draw_page(lines: Sequence[str], height: int, width: int, rng: np.random.Generator) -> Images:
    paper = rng.integers(150, 256, 3)
    image = Image.new("RGB", (width, height), tuple(int(c) for c in paper))
    pen = ImageDraw.Draw(image)
    top = int(rng.integers(4, 30))
    while top < height - 12:
        points = int(rng.integers(12, 44))
        ink = tuple(int(c) for c in rng.integers(0, 110, 3))
        left = int(rng.integers(2, width // 3))
        pen.text((left, top), str(rng.choice(lines)), fill=ink, font=_load_font(points))
        top += int(points * rng.uniform(1.2, 3.0))
    return _add_grain(np.asarray(image), rng)


def _draw_line(text: str, height: int, width: int, rng: np.random.Generator) -> Images:
    paper = tuple(int(c) for c in rng.integers(150, 256, 3))
    image = Image.new("RGB", (width, height), paper)
    points = int(rng.integers(height // 2, height - 8))
    ink = tuple(int(c) for c in rng.integers(0, 110, 3))
    start = int(rng.integers(0, max(len(text) - 30, 1)))
    place = (int(rng.integers(0, 10)), int(rng.integers(0, height - points)) // 2)
    ImageDraw.Draw(image).text(place, text[start:], fill=ink, font=_load_font(points))
    return _add_grain(np.asarray(image), rng)


def _add_grain(pixels: Images, rng: np.random.Generator) -> Images:
    noisy = pixels + rng.normal(0, rng.uniform(0, 8), pixels.shape)
    return np.clip(np.rint(noisy), 0, 255).astype(np.uint8)


def _load_font(points: int) -> Any:
    return ImageFont.load_default(points)


@cache
def _list_sentences() -> tuple[str, ...]:
    found = set()
    for module in _iterate_modules():
        own = [v for v in vars(module).values() if _find_module(v) == module.__name__]
        for item in (module, *own):
            for sentence in re.split(r"(?<=[a-z])\.\s+", inspect.getdoc(item) or ""):
                words = sentence.split()
                plain = sentence.replace("\n", " ").isprintable() and ">>>" not in words
                if plain and _LEAST_WORDS <= len(words) <= _MOST_WORDS:
                    found.add(" ".join(words))
    return tuple(sorted(found))


def _find_module(item: object) -> object:
    """Return where a class or function is defined: what merely passed through differs by run."""
    is_defined = inspect.isclass(item) or inspect.isfunction(item)
    return getattr(item, "__module__", None) if is_defined else None


def _iterate_modules() -> Iterator[Any]:
    # what importing them would start or print
    loud = {"antigravity", "this", "idlelib", "turtledemo", "tkinter", "turtle", "test", "lib2to3"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for name in sorted(sys.stdlib_module_names - loud):
            try:
                if not name.startswith("_"):
                    yield import_module(name)
            except ImportError:
                continue


@cache
def _list_kinds() -> tuple[tuple[Path, ...], ...]:
    kinds: dict[str, list[Path]] = defaultdict(list)
    for root in _FILE_ROOTS:
        for path in islice(_iterate_files(root), _MOST_FILES_PER_ROOT):
            if len(kinds[path.suffix.lower()]) < _MOST_FILES_PER_KIND:
                kinds[path.suffix.lower()].append(path)
    return tuple(tuple(f) for _, f in sorted(kinds.items()) if len(f) >= _LEAST_FILES_PER_KIND)


def _iterate_files(root: str) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            try:
                usable = path.is_file() and not path.is_symlink()
                if usable and path.stat().st_size >= _LEAST_FILE_BYTES and os.access(path, os.R_OK):
                    yield path
            except OSError:
                continue
