"""Task accuracy: built-in metrics, entry points, and the largest drop."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from trtdeploy.core.arrays import Array, Feeds, Outputs
from trtdeploy.core.errors import InputError, MissingDependencyError, UsageError
from trtdeploy.parity.result import Verdict
from trtdeploy.parity.task_metric import (
    MeanIouMetric,
    Top1Metric,
    load_task_metric,
    measure_task_metric,
)

LABELS = np.array([0, 1, 2, 1])
SCORES = np.eye(3, dtype=np.float32)[LABELS]


def run_right(feeds: Feeds) -> Outputs:
    return {"y": feeds["x"]}


def run_one_wrong(feeds: Feeds) -> Outputs:
    scores = feeds["x"].copy()
    scores[0] = [0, 0, 1]
    return {"y": scores}


def make_samples(batches: int = 2) -> Iterator[tuple[Feeds, Array]]:
    for _ in range(batches):
        yield {"x": SCORES}, LABELS


@pytest.mark.parametrize(("max_drop", "verdict"), [(0.25, "pass"), (0.2, "fail")])
def test_a_drop_is_allowed_up_to_its_limit(max_drop: float, verdict: str) -> None:
    metric = measure_task_metric(
        "top1", run_right, run_one_wrong, make_samples(), max_drop=max_drop
    )
    assert (metric.reference, metric.candidate) == (1.0, 0.75)
    assert metric.verdict is Verdict(verdict)


def test_a_better_candidate_passes() -> None:
    metric = measure_task_metric("top1", run_one_wrong, run_right, make_samples(), max_drop=0)
    assert metric.verdict is Verdict.PASS


def test_mean_iou_follows_the_definition() -> None:
    found = np.array([[[0, 0], [1, 1]]])
    wanted = np.array([[[0, 1], [1, 255]]])
    metric = MeanIouMetric()
    metric.add({"y": found}, wanted)
    # Class 0: 1 of 2, class 1: 1 of 2; the void pixel counts nowhere.
    assert metric.finish() == pytest.approx(0.5)


def test_mean_iou_adds_up_over_batches_and_takes_scores() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((4, 3, 5, 5)).astype(np.float32)
    labels = rng.integers(0, 3, (4, 5, 5))
    whole, parts = MeanIouMetric(), MeanIouMetric()
    whole.add({"y": scores}, labels)
    parts.add({"y": scores[:1]}, labels[:1])
    parts.add({"y": scores[1:]}, labels[1:])
    assert whole.finish() == parts.finish()
    found = scores.argmax(axis=1)
    shares = [
        ((found == k) & (labels == k)).sum() / ((found == k) | (labels == k)).sum()
        for k in range(3)
    ]
    assert whole.finish() == pytest.approx(np.mean(shares))


def test_labels_must_fit() -> None:
    with pytest.raises(InputError, match="top1 needs one label per sample"):
        Top1Metric().add({"y": SCORES}, LABELS[:2])
    with pytest.raises(InputError, match="miou needs label maps"):
        MeanIouMetric().add({"y": np.zeros((1, 2, 4, 4))}, np.zeros((1, 5, 5), int))
    with pytest.raises(InputError, match="no labelled element"):
        MeanIouMetric().finish()


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "own_metric.py").write_text(
        "def count(outputs, labels):\n    return len(labels) + outputs['y'].shape[0] / 100\n"
        "def nan(outputs, labels):\n    return float('nan')\n"
        "constant = 3\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_metric"
    sys.modules.pop("own_metric", None)


def test_an_entry_point_sees_all_samples_at_once(module: str) -> None:
    metric = measure_task_metric(
        f"{module}:count", run_right, run_right, make_samples(3), max_drop=0
    )
    assert metric.reference == pytest.approx(12.12)
    assert metric.name == f"{module}:count"


def test_wrong_metrics_are_refused(module: str) -> None:
    with pytest.raises(InputError, match="returned nan"):
        measure_task_metric(f"{module}:nan", run_right, run_right, make_samples(), max_drop=0)
    with pytest.raises(UsageError, match="give top1, miou or an entry point"):
        load_task_metric("accuracy")
    with pytest.raises(UsageError, match="has no function 'constant'"):
        load_task_metric(f"{module}:constant")
    with pytest.raises(MissingDependencyError, match="cannot be imported"):
        load_task_metric("no_such_module_here:f")
    with pytest.raises(UsageError, match="0 or more"):
        measure_task_metric("top1", run_right, run_right, make_samples(), max_drop=-1)
    with pytest.raises(InputError, match="no samples with labels"):
        measure_task_metric("top1", run_right, run_right, [], max_drop=0)
