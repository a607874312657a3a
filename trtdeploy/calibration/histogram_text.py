"""A histogram's counts as text: what ``calibration.json`` holds beside the figures for people."""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np

from trtdeploy.calibration.histogram import FINITE_BINS, MagnitudeHistogram, find_bins

_COUNT_BYTES = 8
_LARGEST = float(np.finfo(np.float32).max)
_LARGEST_BYTES = FINITE_BINS * _COUNT_BYTES
LONGEST_TEXT = _LARGEST_BYTES * 3 // 2
"""Base64 of what does not compress at all."""
_LARGEST_COUNT = 2**53
"""Up to here FP64 adds counts exactly."""


def format_counts(histogram: MagnitudeHistogram) -> tuple[int, str]:
    """Return the first filled bin, and the counts from there to the last filled bin.

    The text is base64 of zlib-compressed little-endian 64-bit integers; empty when nothing was
    counted.
    """
    (filled,) = histogram.counts.nonzero()
    if not filled.size:
        return 0, ""
    first, last = int(filled[0]), int(filled[-1])
    raw = histogram.counts[first : last + 1].astype("<i8").tobytes()
    return first, base64.b64encode(zlib.compress(raw)).decode("ascii")


def parse_histogram(
    first_bin: int, text: str, limits: tuple[float | None, float | None]
) -> MagnitudeHistogram:
    """Return the histogram that ``format_counts`` described.

    ``limits`` are the smallest and the largest value, None when there is none.

    Raises:
        ValueError: The text is damaged, or contradicts the limits; says how.
    """
    histogram = MagnitudeHistogram()
    counts = _parse_counts(text)
    if first_bin + counts.size > FINITE_BINS:
        raise ValueError(
            f"counts reach bin {first_bin + counts.size - 1}, expected at most {FINITE_BINS - 1}"
        )
    histogram.counts[first_bin : first_bin + counts.size] = counts
    minimum, maximum = limits
    if not counts.size and minimum is None and maximum is None:
        return histogram
    if minimum is None or maximum is None or minimum > maximum or not counts.size:
        raise ValueError(f"counts, minimum {minimum} and maximum {maximum} contradict each other")
    histogram.minimum, histogram.maximum = minimum, maximum
    (filled,) = histogram.counts.nonzero()
    if histogram.largest > _LARGEST or int(find_bins(histogram.largest)) != filled[-1]:
        raise ValueError(
            f"the largest magnitude {histogram.largest:g} is not in the last filled bin"
        )
    return histogram


def _parse_counts(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return at least one count, the last of them not 0; or none for an empty text."""
    if not text:
        return np.zeros(0, np.int64)
    try:
        unpacker = zlib.decompressobj()
        raw = unpacker.decompress(base64.b64decode(text, validate=True), _LARGEST_BYTES + 1)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"counts are damaged: {error}") from error
    if len(raw) > _LARGEST_BYTES or len(raw) % _COUNT_BYTES or not raw or not unpacker.eof:
        raise ValueError(
            f"counts are damaged: given {len(raw)} bytes, expected whole 64-bit numbers for at "
            f"most {FINITE_BINS} bins"
        )
    counts = np.frombuffer(raw, "<i8").astype(np.int64)
    if counts.min() < 0 or float(counts.sum(dtype=np.float64)) > _LARGEST_COUNT or not counts[-1]:
        raise ValueError("counts are damaged: given negative, too large, or no counts at the end")
    return counts
