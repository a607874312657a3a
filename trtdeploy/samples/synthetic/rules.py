"""Which values an input gets, and the sentence that says so. The first rule that answers wins."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from trtdeploy.core.arrays import Array
from trtdeploy.core.dtypes import DType
from trtdeploy.samples.synthetic.request import InputRequest, find_channel_axis

Answer = tuple[Array, str]
Rule = Callable[[InputRequest], Answer | None]
Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Rng = np.random.Generator

_SMALL: Final = 7
_BYTE: Final = 255
_LENGTH_WORDS: Final = frozenset({"len", "lens", "length", "lengths", "seqlen", "seqlens"})
_SIZE_WORDS: Final = frozenset({"size", "sizes", "height", "width", "hw", "shape", "shapes"})
_SCALE_WORDS: Final = frozenset({"scale", "scales", "temperature"})
_TYPE_WORDS: Final = frozenset({"type", "types", "segment", "segments"})
_POSITION_WORDS: Final = frozenset({"pos", "position", "positions"})
_VECTOR: Final = 2  # lengths and sizes have one axis, or two with the batch
_GRIDS: Final = (2, 4, 8, 16, 32, 64)
_COARSE: Final = (2, 4, 8)
_EDGES: Final = 6
_CHROMA: Final = np.float32(0.5)
_NOISE: Final = np.float32(0.02)


def take_profile_values(request: InputRequest) -> Answer | None:
    """Shape tensors hold exactly what the optimization profile says."""
    if request.values is None:
        return None
    text = "the optimization profile's values"
    high = request.uses.high
    if high is not None and max(request.values, default=0) > high:
        text += f" (above {high}, the most that the model can use: {request.uses.limit})"
    return np.array(request.values, np.int64).reshape(request.shape), text


def make_text(request: InputRequest) -> Answer | None:
    """Strings."""
    if request.spec.dtype is not DType.STRING:
        return None
    words = np.array(["alpha", "beta", "gamma", "delta"], object)
    return words[request.rng.integers(0, words.size, request.shape)], "a few different words"


def make_row_numbers(request: InputRequest) -> Answer | None:
    """Numbers that a Gather, OneHot or their like looks up stay inside the table."""
    uses = request.uses
    if not uses.is_row_number or request.is_bool:
        return None
    low = max(uses.low, int(uses.is_size))
    if uses.high is None or uses.high < low:
        return np.full(request.shape, low), f"{low}: row numbers of a table of unknown size"
    high = min(uses.high, request.largest)
    if request.words & _TYPE_WORDS and not low:
        return np.zeros(request.shape, np.int64), "zeros: every token is of the first type"
    if request.words & _POSITION_WORDS and not uses.is_size:
        return make_positions(request.shape, low, high), f"positions {low}, {low + 1}, ... in order"
    text = f"whole numbers from {low} to {high}: {uses.limit}"
    if uses.has_unknown_table:
        text += "; another table is of unknown size"
    return make_integers(request.rng, request.shape, low, high), text


def make_mask(request: InputRequest) -> Answer | None:
    """Padding masks are a run of ones, then zeros."""
    uses = request.uses
    is_named = "mask" in request.spec.name.lower()
    is_truth = uses.is_tested or (bool(uses.compared) and uses.compared <= {0.0, 1.0})
    if not is_named and (request.is_float or not is_truth or not request.shape):
        return None
    why = "its name says mask" if is_named else "the model reads it as true or false"
    return make_runs(request.rng, request.shape), f"ones, then zeros, as for padding: {why}"


def make_image(request: InputRequest) -> Answer | None:
    """Images are smooth, with edges; integer ones use the full range of their type."""
    axis = find_channel_axis(request.spec)
    is_byte = request.spec.dtype in (DType.UINT8, DType.INT8)
    if axis is None or not (request.is_float or is_byte):
        return None
    pixels = make_images(request.rng, request.shape, axis)
    if request.is_float:
        return pixels, "smooth random images with edges, from 0 to 1"
    low = 0 if request.spec.dtype is DType.UINT8 else -128
    values = np.rint(pixels * _BYTE).astype(np.int64) + low
    return values, f"smooth random images with edges, from {low} to {low + _BYTE}"


def take_compared_value(request: InputRequest) -> Answer | None:
    """A setting that the model compares with a number (a sampling rate) is that number."""
    known = [int(value) for value in request.uses.compared if 0 <= value <= request.largest]
    if not request.is_integer or not known or len(request.shape) > 1:
        return None
    value = max(known)
    return np.full(request.shape, value), f"{value}: the model compares it with that number"


def make_length(request: InputRequest) -> Answer | None:
    """A length of sequences is that of the sequences fed."""
    length = request.others.sequence_length
    if not request.is_integer or not request.words & _LENGTH_WORDS or length is None:
        return None
    if len(request.shape) > _VECTOR:
        return None
    return np.full(request.shape, min(length, request.largest)), f"{length}: the full length"


def make_size(request: InputRequest) -> Answer | None:
    """A size of images is that of the images fed; a scale is 1."""
    if len(request.shape) > _VECTOR or request.is_bool:
        return None
    if request.is_float and request.words & _SCALE_WORDS:
        return np.ones(request.shape), "ones: no scaling"
    size = request.others.image_size
    if not request.words & _SIZE_WORDS or size is None or max(size) > request.largest:
        return None
    if "width" in request.words and "height" not in request.words:
        size = size[::-1]
    row = np.resize(np.array(size), request.shape[-1:] or (1,))
    values = np.broadcast_to(row, request.shape) if request.shape else row[0]
    return np.array(values), f"{size[0]}, {size[1]}: the size of the images"


def make_positive(request: InputRequest) -> Answer | None:
    """Sizes and divisors are positive."""
    if not request.uses.is_size or request.is_bool:
        return None
    if request.is_float:
        return np.ones(request.shape), "ones: the model sizes or divides something by it"
    values = make_integers(request.rng, request.shape, 1, min(_SMALL + 1, request.largest))
    return values, f"whole numbers from 1 to {_SMALL + 1}: the model sizes or divides by it"


def make_flags(request: InputRequest) -> Answer | None:
    """Booleans are mixed, and not all false."""
    if not request.is_bool:
        return None
    flags = make_integers(request.rng, request.shape, 0, 1)
    if request.shape and flags.size and not flags.any():
        flags.flat[0] = 1
    return flags, "true and false by chance"


def make_small_integers(request: InputRequest) -> Answer | None:
    """Other integers are small; bytes use their full range."""
    if not request.is_integer:
        return None
    is_byte = request.spec.dtype is DType.UINT8
    high = min(_BYTE if is_byte else _SMALL, request.largest)
    text = f"whole numbers from 0 to {high}: nothing in the model says what they mean"
    return make_integers(request.rng, request.shape, 0, high), text


def make_numbers(request: InputRequest) -> Answer:
    """Other floats are standard normal."""
    values = make_normal(request.rng, request.shape)
    if request.spec.dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return values + 1j * make_normal(request.rng, request.shape), "standard normal numbers"
    if request.spec.dtype is DType.FLOAT8E8M0:  # it has neither sign nor fraction
        return np.exp2(np.rint(values)), "powers of two"
    return values, "standard normal numbers"


RULES: Final[tuple[Rule, ...]] = (
    take_profile_values,
    make_text,
    make_row_numbers,
    make_mask,
    make_image,
    take_compared_value,
    make_length,
    make_size,
    make_positive,
    make_flags,
    make_small_integers,
    make_numbers,
)


def make_runs(rng: Rng, shape: tuple[int, ...]) -> Integers:
    """Return a padding mask: per first-axis entry a run of ones, then zeros, along the last axis.

    Between half and all of the last axis is ones, and at least one element.
    """
    if not shape:
        return np.ones((), np.int64)
    length = shape[-1]
    rows = shape[0] if len(shape) > 1 else 1
    ends = rng.integers((length + 1) // 2, length + 1, rows)
    runs = (np.arange(length) < np.maximum(ends, 1)[:, None]).astype(np.int64)
    if len(shape) == 1:
        return runs.reshape(length)
    middle = (1,) * (len(shape) - 2)
    return np.array(np.broadcast_to(runs.reshape(rows, *middle, length), shape))


def make_integers(rng: Rng, shape: tuple[int, ...], low: int, high: int) -> Integers:
    """Return whole numbers from ``low`` to ``high``, both included, all equally likely."""
    return np.asarray(rng.integers(low, high, shape, np.int64, endpoint=True))


def make_positions(shape: tuple[int, ...], low: int, high: int | None) -> Integers:
    """Return 0, 1, 2, ... along the last axis, held between ``low`` and ``high``."""
    count = np.arange(shape[-1] if shape else 1, dtype=np.int64)
    if high is not None:
        count %= max(high - low + 1, 1)
    return np.array(np.broadcast_to(count + low, shape) if shape else count[0] + low)


def make_normal(rng: Rng, shape: tuple[int, ...]) -> Floats:
    """Return standard normal numbers."""
    return np.asarray(rng.standard_normal(shape, np.float32))


def make_images(rng: Rng, shape: tuple[int, ...], channel_axis: int) -> Floats:
    """Return smooth random pictures with edges; each fills the range 0 to 1.

    Like photographs they have most power at low frequencies (a sum of random fields whose
    amplitude falls with frequency, the 1/f law of natural images: D. J. Field, "Relations between
    the statistics of natural images and the response properties of cortical cells", 1987), sharp
    borders of a few shapes, channels that mostly agree, and a little sensor noise. White noise
    has none of this, and averages out in the first layers of a network.

    Args:
        rng: Source of randomness.
        shape: Of the batch: N, then C, H, W in some order.
        channel_axis: 1 (NxCxHxW) or 3 (NxHxWxC).
    """
    images = np.empty(shape, np.float32)
    channels = shape[channel_axis]
    height, width = shape[2:] if channel_axis == 1 else shape[1:3]
    for image in images:
        planes = image if channel_axis == 1 else np.moveaxis(image, -1, 0)
        light = _make_field(rng, height, width) + _make_shapes(rng, height, width)
        for channel in range(channels):
            planes[channel] = light
            if channels > 1:
                planes[channel] += _CHROMA * _make_field(rng, height, width, _COARSE)
        planes += _NOISE * rng.standard_normal(planes.shape, np.float32)
        _stretch(planes)
    return images


def _make_field(rng: Rng, height: int, width: int, grids: tuple[int, ...] = _GRIDS) -> Floats:
    """Return a sum of smooth random fields; twice the frequency has half the amplitude."""
    wanted = [grid for grid in grids if grid <= 2 * max(height, width)] or [_GRIDS[0]]
    columns = np.concatenate([_interpolate(width, grid) for grid in wanted], 1)
    # One product for all grids: adding up whole fields costs more than the arithmetic.
    rows = [
        _interpolate(height, grid)
        @ (rng.standard_normal((grid, grid), np.float32) * np.float32(2 / grid))
        for grid in wanted
    ]
    return np.asarray(np.concatenate(rows, 1) @ columns.T)


def _interpolate(size: int, grid: int) -> Floats:
    """Return the matrix (size x grid) of linear interpolation between ``grid`` knots."""
    places = np.linspace(0, grid - 1, size, dtype=np.float32)[:, None]
    return np.asarray(np.maximum(0, 1 - np.abs(places - np.arange(grid, dtype=np.float32))))


def _make_shapes(rng: Rng, height: int, width: int) -> Floats:
    """Return a few half-planes and discs of different brightness: sharp edges of any direction."""
    rows = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    columns = np.linspace(-1, 1, width, dtype=np.float32)
    layer = np.zeros((height, width), np.float32)
    for number in range(_EDGES):
        y, x, radius = rng.uniform(-1, 1), rng.uniform(-1, 1), rng.uniform(0.1, 0.6)
        angle, brightness = rng.uniform(0, 2 * math.pi), rng.normal()
        if number % 2:
            inside = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
        else:
            inside = (rows - y) * math.sin(angle) + (columns - x) * math.cos(angle) > 0
        layer += np.float32(brightness) * inside
    return layer


def _stretch(values: npt.NDArray[Any]) -> None:
    """Bring values to the range 0 to 1, in place."""
    if not values.size:
        return
    low, high = values.min(), values.max()
    values -= low
    values /= max(high - low, np.float32(1e-6))
    np.clip(values, 0, 1, out=values)
