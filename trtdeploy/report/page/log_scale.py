"""A logarithmic axis: powers of ten to positions in a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_FEWEST_DECADES, _MOST_DECADES = 3, 12
_LOWEST, _HIGHEST = -30, 30
_MOST_TICKS = 5


@dataclass(frozen=True)
class LogScale:
    """Decades from ``10**low`` to ``10**high`` drawn from ``start`` over ``length`` units."""

    low: int
    high: int
    start: float
    length: float

    def place(self, value: float) -> float:
        """Return the position of a value; what lies outside is drawn at the end."""
        if not value > 0:
            return self.start
        exponent = self.high if math.isinf(value) else math.log10(value)
        share = (exponent - self.low) / (self.high - self.low)
        return round(self.start + self.length * min(1.0, max(0.0, share)), 1)

    def list_ticks(self) -> list[tuple[float, int]]:
        """Return position and exponent of the decades that get a line."""
        step = math.ceil((self.high - self.low + 1) / _MOST_TICKS)
        return [(self.place(10.0**e), e) for e in range(self.low, self.high + 1, step)]


def fit_log_scale(values: Iterable[float | None], start: float, length: float) -> LogScale:
    """Return a scale over every positive finite value, whole decades wide."""
    found = [math.log10(v) for v in values if v is not None and v > 0 and math.isfinite(v)]
    high = min(_HIGHEST, math.floor(max(found, default=0)) + 1)
    low = max(_LOWEST, high - _MOST_DECADES, math.floor(min(found, default=high)))
    return LogScale(min(low, high - _FEWEST_DECADES), high, start, length)
