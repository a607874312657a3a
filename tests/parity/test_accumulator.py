"""Metrics of one output: what is counted, and that splits and memory do not matter."""

from __future__ import annotations

import tracemalloc
from dataclasses import asdict

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.parity.accumulator import OutputAccumulator, RankingSums
from trtdeploy.parity.result import OutputMetrics, Tolerance

PLAIN = Tolerance(1e-3, 1e-3, None, scaled=False, origin="test")
SCALED = Tolerance(1e-2, 0.0, 1e-2, scaled=True, origin="test")


def measure_output(
    reference: np.ndarray,
    candidate: np.ndarray,
    tolerance: Tolerance,
    *,
    class_axis: int | None = None,
) -> OutputMetrics:
    accumulator = OutputAccumulator(tolerance, class_axis=class_axis)
    accumulator.add(reference, candidate)
    return accumulator.finish()


@given(st.lists(st.integers(1, 7), min_size=1, max_size=4), st.sampled_from([PLAIN, SCALED]))
def test_figures_do_not_depend_on_the_split(sizes: list[int], tolerance: Tolerance) -> None:
    rng = np.random.default_rng(sum(sizes))
    reference = rng.standard_normal((sum(sizes), 12)).astype(np.float32)
    candidate = reference + rng.normal(0, 2e-3, reference.shape).astype(np.float32)
    whole = measure_output(reference, candidate, tolerance, class_axis=1)
    parts = OutputAccumulator(tolerance, class_axis=1)
    start = 0
    for size in sizes:
        parts.add(reference[start : start + size], candidate[start : start + size])
        start += size
    one, other = asdict(whole), asdict(parts.finish())
    for name, value in one.items():
        if name != "shape":  # that of the first call
            is_number = isinstance(value, float)
            assert other[name] == (pytest.approx(value, rel=1e-9) if is_number else value)


def test_memory_does_not_grow_with_the_samples() -> None:
    rng = np.random.default_rng(0)
    reference = rng.standard_normal((1, 16, 2000)).astype(np.float32)
    candidate = reference * np.float32(1.001)

    def measure_peak(samples: int) -> int:
        accumulator = OutputAccumulator(SCALED, class_axis=1)
        tracemalloc.start()
        for _ in range(samples):
            accumulator.add(reference, candidate)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert measure_peak(30) < 1.1 * measure_peak(2)


def test_nonfinite_elements_are_counted_and_left_out() -> None:
    inf, nan = np.inf, np.nan
    reference = np.array([1.0, nan, inf, inf, 2.0, nan], np.float32)
    candidate = np.array([1.5, nan, inf, -inf, nan, 3.0], np.float32)
    metrics = measure_output(reference, candidate, PLAIN)
    assert metrics.nonfinite_reference == 4
    assert metrics.nonfinite_candidate == 4
    assert metrics.nonfinite_only_candidate == 1
    assert metrics.nonfinite_agreeing == 2
    assert metrics.max_abs_error == 0.5
    assert metrics.elements == 6


def test_no_figure_is_ever_nan() -> None:
    arrays = [
        np.zeros((3, 3), np.float32),
        np.zeros((0, 4), np.float32),
        np.full((2, 2), np.nan, np.float32),
        np.float32(1.0).reshape(()),
        np.array([True, False]),
        np.array(["a"], object),
    ]
    for array in arrays:
        figures = asdict(measure_output(array, array.copy(), SCALED, class_axis=0))
        for name, value in figures.items():
            assert value == value, (name, value)  # noqa: PLR0124 NaN differs from itself


def test_shapes_are_never_broadcast() -> None:
    reference = np.ones((4, 10), np.float32)
    for candidate in (reference[:1], reference[:, 0], reference[None]):
        metrics = measure_output(reference, candidate, PLAIN)
        assert metrics.candidate_shape == candidate.shape
        assert metrics.max_abs_error is None


def test_narrow_candidates_are_compared_by_value() -> None:
    reference = np.linspace(-1, 1, 50, dtype=np.float32)
    for dtype in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn):
        metrics = measure_output(reference, reference.astype(dtype), PLAIN)
        assert metrics.candidate_dtype == np.dtype(dtype).name
        assert metrics.relative_l2 is not None
        assert 0 < metrics.relative_l2 < 0.1


def test_complex_outputs_are_pairs_of_numbers() -> None:
    reference = np.array([3 + 4j, 0j], np.complex64)
    metrics = measure_output(reference, reference + 1j, PLAIN)
    assert metrics.max_abs_error == 1.0
    assert metrics.relative_l2 == pytest.approx(np.sqrt(2) / 5)


def test_large_values_do_not_overflow() -> None:
    reference = np.array([3e38, 1.0], np.float32)
    metrics = measure_output(reference, -reference, PLAIN)
    assert metrics.cosine == pytest.approx(-1.0)
    assert metrics.relative_l2 == pytest.approx(2.0)


def test_small_slices_weigh_as_much_as_large_ones() -> None:
    reference = np.ones((1, 4, 100), np.float32)
    reference[:, 0] = 1000.0
    candidate = reference.copy()
    candidate[:, 1:] = 0.0
    metrics = measure_output(reference, candidate, PLAIN)
    assert metrics.relative_l2 is not None
    assert metrics.relative_l2 < 2e-3
    assert metrics.balanced_relative_l2 == pytest.approx(np.sqrt(3 / 4))


def test_the_largest_magnitude_of_all_samples_scales_the_tolerance() -> None:
    accumulator = OutputAccumulator(SCALED)
    accumulator.add(np.array([[1.0]]), np.array([[1.5]]))
    accumulator.add(np.array([[100.0]]), np.array([[100.0]]))
    assert accumulator.finish().allclose_fraction == 1.0


def rank(reference: list[list[float]], candidate: list[list[float]], slack: float) -> RankingSums:
    sums = RankingSums()
    sums.add(np.array(reference), np.array(candidate), np.full(len(reference), slack))
    return sums


def test_a_flip_is_counted_with_the_gap_of_the_reference() -> None:
    sums = rank([[0.1, 5.0, 4.9]], [[0.1, 4.0, 9.0]], 0.01)
    assert (sums.flips, sums.ties) == (1, 0)
    assert sums.largest_gap == pytest.approx(0.1)
    assert sums.top1_agreement == 0.0


def test_a_tie_counts_as_equal() -> None:
    sums = rank([[1.0, 1.0 + 1e-6]], [[1.0 + 1e-6, 1.0]], 1e-3)
    assert (sums.flips, sums.ties) == (0, 1)
    assert sums.largest_tie == pytest.approx(1e-6)
    assert sums.top1_agreement == 1.0


def test_top5_counts_the_overlap() -> None:
    reference = [[9.0, 8, 7, 6, 5, 4, 3, 2]]
    candidate = [[9.0, 8, 7, 6, 1, 2, 5, 4]]
    sums = rank(reference, candidate, 0.0)
    assert sums.top5_agreement == pytest.approx(0.8)
    assert sums.top1_agreement == 1.0


def test_top5_lets_the_fifth_and_a_tied_sixth_swap() -> None:
    reference = [[9.0, 8, 7, 6, 5, 4.999, 0, 0]]
    candidate = [[9.0, 8, 7, 6, 5, 5.001, 0, 0]]
    assert rank(reference, candidate, 0.01).top5_agreement == 1.0
    assert rank(reference, candidate, 0.0).top5_agreement == pytest.approx(0.8)


def test_few_classes_have_no_top5() -> None:
    assert rank([[1.0, 2.0]], [[1.0, 2.0]], 0.0).top5_agreement is None


def test_no_rows() -> None:
    sums = RankingSums()
    sums.add(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0))
    assert sums.top1_agreement is None
