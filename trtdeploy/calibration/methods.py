"""The calibration methods by name, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trtdeploy.calibration.entropy import find_least_divergence
from trtdeploy.calibration.histogram import MagnitudeHistogram
from trtdeploy.calibration.percentile import (
    DEFAULT_PERCENTILE,
    check_percentile,
    find_percentile,
)
from trtdeploy.calibration.squared_error import find_least_squared_error
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.number_formats import FP8_E4M3, INT8, QuantizedType

DEFAULT_METHODS = {INT8.name: "entropy", FP8_E4M3.name: "minmax"}
"""By 8-bit type, where nobody names one (docs/quantization-accuracy.md compares them). FP8 gains
nothing from clipping: its error is relative. For INT8, entropy is best or within 2 dB of the best
SQNR on each of four networks, where any other fell 4 to 11 dB behind on one: ResNet-50,
MobileNetV3, YOLOv8n, PP-OCRv6 detection, 16 made-up images."""
AMAX_OF_NOTHING = 1.0
"""Of a tensor that is always zero: any scale stores it exactly, and 1 disturbs no arithmetic."""


@dataclass(frozen=True)
class MethodChoice:
    """Which method finds the amax of which tensor.

    Attributes:
        default: For tensors that no pattern matches.
        by_tensor: Pattern and method; the first pattern that matches a tensor's name decides.
            ``*``, ``?`` and ``[...]`` are wildcards; an exact name always matches itself.
        percentile: Share of the magnitudes that ``percentile`` keeps.

    Raises:
        UsageError: There is no such method or percentile.
    """

    default: str = DEFAULT_METHODS[INT8.name]
    by_tensor: tuple[tuple[str, str], ...] = ()
    percentile: float = DEFAULT_PERCENTILE

    def __post_init__(self) -> None:
        """Check names and numbers."""
        for method in (self.default, *(method for _, method in self.by_tensor)):
            check_method(method)
        check_percentile(self.percentile)

    def find_method(self, tensor: str) -> str:
        """Return the method for a tensor."""
        for pattern, method in self.by_tensor:
            if tensor == pattern or fnmatchcase(tensor, pattern):
                return method
        return self.default

    def check_patterns(self, tensors: Iterable[str]) -> None:
        """Refuse patterns that match nothing: a typo would silently lose its effect.

        Raises:
            UsageError: Names the pattern and the closest tensor.
        """
        names = list(tensors)
        for pattern, _ in self.by_tensor:
            if pattern not in names and not any(fnmatchcase(name, pattern) for name in names):
                raise UsageError(
                    f"the pattern {pattern!r} matches no calibrated tensor",
                    hint=suggest_name(pattern, names),
                )


def check_method(method: str) -> None:
    """Raise ``UsageError`` unless there is such a method."""
    if method not in CALIBRATION_METHODS:
        raise UsageError(
            f"there is no calibration method {method!r}",
            hint=suggest_name(method, CALIBRATION_METHODS),
        )


def find_amax(
    histogram: MagnitudeHistogram,
    method: str,
    kind: QuantizedType = INT8,
    *,
    percentile: float = DEFAULT_PERCENTILE,
) -> float:
    """Return the magnitude at which a tensor is clipped; its scale is amax / ``kind.max``.

    Args:
        histogram: Values of the tensor; NaN and infinity do not count.
        method: ``minmax`` (the largest magnitude), ``percentile``, ``entropy`` or ``mse``.
        kind: What the tensor is quantized to. ``entropy`` is about levels of equal width, those of
            integers: the levels of FP8 narrow towards zero as amax does, so clipping only
            loses, and the largest magnitude is returned.
        percentile: Share of the magnitudes that ``percentile`` keeps.

    Returns:
        Finite and above 0; at most the largest magnitude. 1.0 when no value differs from zero.

    Raises:
        UsageError: There is no such method or percentile.
    """
    check_method(method)
    largest = histogram.largest
    if largest == 0.0:
        return AMAX_OF_NOTHING
    if method == "percentile":
        found = find_percentile(histogram, percentile)
    elif method == "entropy" and kind == INT8:
        found = find_least_divergence(histogram)
    elif method == "mse":
        found = find_least_squared_error(histogram, kind)
    else:
        found = largest
    return min(found, largest)
