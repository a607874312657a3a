"""Every method against brute force, on data of all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trtdeploy.calibration.entropy import LEVELS, LINEAR_BINS, MOST_CLIPPING
from trtdeploy.calibration.histogram import MagnitudeHistogram, find_bins, find_edges
from trtdeploy.calibration.methods import MethodChoice, find_amax
from trtdeploy.calibration.squared_error import list_levels
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.core.errors import UsageError
from trtdeploy.core.number_formats import FP8_E4M3, FP8_E5M2, INT8, QuantizedType

Floats = npt.NDArray[np.float64]
KINDS = (INT8, FP8_E4M3, FP8_E5M2)
SMALL = st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=12).filter(any)
COUNT = 100_000


def normal(rng: Any) -> Floats:
    return rng.normal(size=COUNT)


def relu(rng: Any) -> Floats:
    return np.maximum(rng.normal(size=COUNT), 0)


def silu(rng: Any) -> Floats:
    values = 3 * rng.normal(size=COUNT)
    return values / (1 + np.exp(-values))


def heavy_tailed(rng: Any) -> Floats:
    return rng.standard_t(5, COUNT)


def pixels(rng: Any) -> Floats:
    return rng.integers(0, 256, COUNT) / 255


def with_outlier(rng: Any) -> Floats:
    return np.append(rng.normal(size=COUNT), 300.0)


DISTRIBUTIONS = (normal, relu, silu, heavy_tailed, pixels, with_outlier)
DISCRETE = 1.05
"""A grid of values may fit that of the type: places within a bin matter, and are not known."""


def count(values: Any) -> MagnitudeHistogram:
    histogram = MagnitudeHistogram()
    histogram.add(np.asarray(values, np.float32))
    return histogram


def magnitudes_of(values: Any) -> Floats:
    return np.abs(np.asarray(values, np.float32)).astype(np.float64)


def quantize(magnitudes: Floats, amax: float, kind: QuantizedType) -> Floats:
    """Round to the nearest stored magnitude, one by one, and saturate."""
    levels = list_levels(kind) / kind.max * amax
    return levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, magnitudes)]


def measure_error(magnitudes: Floats, amax: float, kind: QuantizedType) -> float:
    return float(np.square(quantize(magnitudes, amax, kind) - magnitudes).sum())


@given(SMALL)
def test_minmax_is_exact(values: list[float]) -> None:
    assert find_amax(count(values), "minmax") == magnitudes_of(values).max()


@given(SMALL, st.floats(0.01, 100))
def test_percentile_is_the_order_statistic(values: list[float], percentile: float) -> None:
    found = find_amax(count(values), "percentile", percentile=percentile)
    expected = np.percentile(magnitudes_of(values), percentile, method="inverted_cdf")
    tiny = 1e-37  # from here down bins are as wide as they are high
    if expected < tiny:
        assert found == magnitudes_of(values).max() or found < 2 * tiny
    else:
        assert found == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("make", DISTRIBUTIONS)
@pytest.mark.parametrize("percentile", [50.5, 99.0, 99.99, 100.0])
def test_percentile_of_many_values(make: Callable[[Any], Floats], percentile: float) -> None:
    values = make(np.random.default_rng(1))
    found = find_amax(count(values), "percentile", percentile=percentile)
    expected = np.percentile(magnitudes_of(values), percentile, method="inverted_cdf")
    assert found == pytest.approx(expected, rel=0.01)


def spread_within_bins(values: Any) -> Floats:
    """Return 64 points for each value, spread over the bin that it fell into."""
    magnitudes = magnitudes_of(values)
    bins = find_bins(magnitudes)
    edges = find_edges([bins, bins + 1])
    edges[1][bins == bins.max()] = max(magnitudes.max(), edges[0].max() * (1 + 1e-6))
    places = (np.arange(64) + 0.5) / 64
    points: Floats = (edges[0][:, None] + (edges[1] - edges[0])[:, None] * places).ravel()
    return points


def spread_evenly(values: Any) -> Floats:
    """Make the linear histogram value by value: each is spread over the bin that it fell into."""
    magnitudes = magnitudes_of(values)
    amax = magnitudes.max()
    limits = amax * np.arange(LINEAR_BINS + 1) / LINEAR_BINS
    top = int(find_bins(amax))
    mass = np.zeros(LINEAR_BINS)
    for position in find_bins(magnitudes):
        low, high = find_edges([position, position + 1])
        high = max(amax, low * (1 + 1e-6)) if position == top else high
        parts = np.diff(np.clip(limits, low, high)) / (high - low)
        parts[-1] += 1 - parts.sum()
        mass += np.where(parts > 1e-9, parts, 0)
    mass[0] = mass[1]
    return mass


def measure_divergences(mass: Floats) -> list[float]:
    """KL(P || Q) as the method is described: array by array, level by level."""
    found = []
    for size in range(LEVELS, mass.size + 1):
        p = mass[:size].copy()
        p[-1] += mass[size:].sum()
        level = np.arange(size) * LEVELS // size
        filled = mass[:size] > 0
        means = np.bincount(level, mass[:size]) / np.bincount(level, filled).clip(1)
        q = np.where(filled, means[level], 0.0)
        if not q.sum() or (q[p > 0] == 0).any():
            found.append(np.inf)
            continue
        p, q = p / p.sum(), q / q.sum()
        some = p > 0
        found.append(float((p[some] * np.log(p[some] / q[some])).sum()))
    return found


@settings(max_examples=8, deadline=None)
@given(st.lists(st.floats(-8, 8, width=32), min_size=2, max_size=12).filter(any))
def test_entropy_is_least_among_all_amax(values: list[float]) -> None:
    found = find_amax(count(values), "entropy")
    magnitudes = magnitudes_of(values)
    amax = magnitudes.max()
    place = found / amax * LINEAR_BINS
    assert place == pytest.approx(round(place), abs=1e-6)
    divergences = np.array(measure_divergences(spread_evenly(values)))
    limits = amax * np.arange(LEVELS, LINEAR_BINS + 1) / LINEAR_BINS
    points = spread_within_bins(values)
    clipping = np.square(np.maximum(points - limits[:, None], 0)).sum(axis=1)
    rounding = measure_error(points, amax, INT8)
    assert clipping[round(place) - LEVELS] <= MOST_CLIPPING * rounding * 1.02
    divergences[clipping > MOST_CLIPPING * rounding * 0.98] = np.inf
    assert divergences[round(place) - LEVELS] <= divergences.min() + 1e-6


@pytest.mark.parametrize("make", [normal, relu, pixels, with_outlier])
def test_entropy_of_the_values_themselves_is_no_lower(make: Callable[[Any], Floats]) -> None:
    """The divergence is compared, not its place: where it is flat, noise decides that.

    A few bins to either side count too, because a single empty one makes it infinite. What clipping
    may cost decides for the others, see below.
    """
    magnitudes = magnitudes_of(make(np.random.default_rng(0)))
    mass = np.histogram(magnitudes, LINEAR_BINS, (0, magnitudes.max()))[0].astype(np.float64)
    mass[0] = mass[1]
    divergences = np.array(measure_divergences(mass))
    found = find_amax(count(magnitudes), "entropy")
    place = round(found / magnitudes.max() * LINEAR_BINS) - LEVELS
    assert divergences[max(place - 5, 0) : place + 6].min() <= divergences.min() * 1.05


@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5, 6], [3e38, -1e38], [0.7] * 9, [0, 1, 1, 0]])
def test_entropy_clips_nothing_of_discrete_values(values: list[float]) -> None:
    assert find_amax(count(values), "entropy") == np.float32(max(values))


@pytest.mark.parametrize(("mean", "deviation"), [(-2.0, 1.0), (-3.0, 1.5), (-6.0, 2.0)])
def test_entropy_keeps_more_than_the_negative_side(mean: float, deviation: float) -> None:
    """Results of SiLU reach from -0.28 up; of these, divergence alone would keep 0.28."""
    inputs = np.random.default_rng(5).normal(mean, deviation, COUNT)
    values = inputs / (1 + np.exp(-inputs))
    magnitudes = magnitudes_of(values)
    found, amax = find_amax(count(values), "entropy"), magnitudes.max()
    assert found > -5 * values.min()
    clipping = np.square(np.maximum(magnitudes - found, 0)).sum()
    assert clipping <= MOST_CLIPPING * measure_error(magnitudes, amax, INT8) * 1.02


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(2**-7, 8, width=32), min_size=1, max_size=6), st.sampled_from(KINDS))
def test_mse_is_least_among_all_amax(values: list[float], kind: QuantizedType) -> None:
    histogram = count(values)
    bins, points = find_bins(magnitudes_of(values)), spread_within_bins(values)
    candidates = find_edges(np.arange(bins.max() - 3 * 128, bins.max() + 1))
    candidates = np.append(candidates[candidates > 0], histogram.largest)
    least = min(measure_error(points, each, kind) for each in candidates)
    found = measure_error(points, find_amax(histogram, "mse", kind), kind)
    assert found <= least * 1.02


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("make", DISTRIBUTIONS)
def test_mse_of_many_values(make: Callable[[Any], Floats], kind: QuantizedType) -> None:
    magnitudes = magnitudes_of(make(np.random.default_rng(2))[-20_000:])
    amax = magnitudes.max()
    least = min(measure_error(magnitudes, amax * share, kind) for share in np.linspace(0.1, 1, 60))
    found = measure_error(magnitudes, find_amax(count(magnitudes), "mse", kind), kind)
    assert found <= least * (DISCRETE if make is pixels else 1.01)


def test_fp8_hardly_clips() -> None:
    values = np.random.default_rng(4).normal(size=COUNT)
    histogram = count(values)
    assert find_amax(histogram, "mse", INT8) < 0.9 * histogram.largest
    assert find_amax(histogram, "mse", FP8_E4M3) > 0.9 * histogram.largest
    assert find_amax(histogram, "entropy", FP8_E4M3) == histogram.largest


@given(
    st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=8),
    st.sampled_from(CALIBRATION_METHODS),
    st.sampled_from(KINDS),
)
def test_amax_is_positive_and_at_most_the_largest(
    values: list[float], method: str, kind: QuantizedType
) -> None:
    histogram = count(values)
    found = find_amax(histogram, method, kind)
    assert 0 < found <= (histogram.largest or 1.0)


@pytest.mark.parametrize("method", CALIBRATION_METHODS)
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 1.0),
        ([0.0, -0.0], 1.0),
        ([3.25], 3.25),
        ([-1000.0], 1000.0),
        ([1e-45], np.float32(1e-45)),
        ([np.finfo(np.float32).max], np.finfo(np.float32).max),
        ([0.0] * 100_000 + [0.5], 0.5),
    ],
)
def test_degenerate_tensors(method: str, values: list[float], expected: float) -> None:
    for kind in KINDS:
        assert find_amax(count(values), method, kind) == pytest.approx(expected, rel=0.01)


def test_levels_are_what_the_types_store() -> None:
    assert list_levels(INT8).tolist() == list(range(128))
    for kind, smallest, number in ((FP8_E4M3, 2**-9, 127), (FP8_E5M2, 2**-16, 124)):
        levels = list_levels(kind)
        assert (levels[0], levels[1], levels[-1], levels.size) == (0, smallest, kind.max, number)
        assert (np.diff(levels) > 0).all()


def test_first_pattern_that_matches_decides() -> None:
    choice = MethodChoice("mse", (("head[0]", "minmax"), ("head*", "percentile")))
    names = ("head[0]", "head1", "body")
    assert [choice.find_method(name) for name in names] == ["minmax", "percentile", "mse"]
    choice.check_patterns(names)
    with pytest.raises(UsageError, match=r"'head\[0\]' matches no calibrated tensor") as caught:
        choice.check_patterns(["head1", "head2"])
    assert "head" in caught.value.hint


@pytest.mark.parametrize(
    "make",
    [
        lambda: MethodChoice("entropie"),
        lambda: MethodChoice("mse", (("*", "max"),)),
        lambda: MethodChoice(percentile=0.0),
        lambda: MethodChoice(percentile=100.5),
        lambda: MethodChoice(percentile=float("nan")),
        lambda: find_amax(count([1.0]), "kl"),
    ],
)
def test_unknown_methods_and_percentiles_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(UsageError) as caught:
        make()
    assert caught.value.hint
