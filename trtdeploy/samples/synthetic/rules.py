"""Which values an input gets, and the sentence that says so. The first rule that answers wins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from trtdeploy.core.arrays import Array
from trtdeploy.core.dtypes import DType
from trtdeploy.samples.synthetic.request import InputRequest, find_channel_axis
from trtdeploy.samples.synthetic.values import (
    make_images,
    make_integers,
    make_normal,
    make_positions,
    make_runs,
)

Answer = tuple[Array, str]
Rule = Callable[[InputRequest], Answer | None]

_SMALL: Final = 7
_BYTE: Final = 255
_LENGTH_WORDS: Final = frozenset({"len", "lens", "length", "lengths", "seqlen", "seqlens"})
_SIZE_WORDS: Final = frozenset({"size", "sizes", "height", "width", "hw", "shape", "shapes"})
_SCALE_WORDS: Final = frozenset({"scale", "scales", "temperature"})
_TYPE_WORDS: Final = frozenset({"type", "types", "segment", "segments"})
_POSITION_WORDS: Final = frozenset({"pos", "position", "positions"})
_VECTOR: Final = 2  # lengths and sizes have one axis, or two with the batch


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
