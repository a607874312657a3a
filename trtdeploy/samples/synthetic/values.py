"""Made-up values: masks, row numbers, images that look a little like photographs."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]
Rng = np.random.Generator

_GRIDS: Final = (2, 4, 8, 16, 32, 64)
_COARSE: Final = (2, 4, 8)
_EDGES: Final = 6
_CHROMA: Final = np.float32(0.5)
_NOISE: Final = np.float32(0.02)


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
