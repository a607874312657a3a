"""Task accuracy of both models: what a user of the model would notice.

Built in, both as shares between 0 and 1:

=========  =====================================================================================
``top1``   share of samples whose arg max over the class axis is the label (O. Russakovsky et
           al., ImageNet Large Scale Visual Recognition Challenge, IJCV 2015, section 4.1)
``miou``   mean over classes of TP / (TP + FP + FN), over all pixels of all samples together
           (M. Everingham et al., The PASCAL Visual Object Classes Challenge, IJCV 2015, section
           4.4); classes that neither side ever has do not count
=========  =====================================================================================

Anything else is an entry point ``module:function`` of the form ``function(outputs, labels) ->
float``, where larger is better, ``outputs`` maps names to arrays and ``labels`` is one array, both
joined along axis 0. A metric of one's own sees all samples at once, as mean average precision must,
so that their outputs are kept; the built-in ones keep counts only.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from trtdeploy.core.arrays import Array, Feeds, Outputs, Runner
from trtdeploy.core.errors import InputError, MissingDependencyError, UsageError
from trtdeploy.parity.result import TaskMetric, Verdict
from trtdeploy.samples.source import SampleSource

MetricFunction = Callable[[Outputs, Array], float]
LabelledFeeds = Iterable[tuple[Feeds, Array]]
LABELS = "labels"
"""Name of the array of labels in an ``.npz`` file, one label (or label map) per sample."""
VOID_LABEL = 255
"""Pixels with this label, or a negative one, belong to no class (PASCAL VOC, Cityscapes)."""
_IMAGE_RANK = 4


class MetricAccumulator(Protocol):
    """A metric that takes one batch after the other."""

    def add(self, outputs: Outputs, labels: Array) -> None:
        """Add one batch."""

    def finish(self) -> float:
        """Return the metric over everything that was added."""
        ...


class Top1Metric:
    """Share of samples whose arg max is the label."""

    def __init__(self) -> None:
        self._right = 0
        self._total = 0

    def add(self, outputs: Outputs, labels: Array) -> None:
        """Add one batch: scores N x classes (or N x classes x ...), labels N (x ...)."""
        found = find_classes(_take_scores(outputs))
        wanted = labels.reshape(found.shape) if labels.size == found.size else labels
        if found.shape != wanted.shape:
            raise InputError(
                f"top1 needs one label per sample: {found.shape} predictions, {labels.shape} labels"
            )
        self._right += int(np.count_nonzero(found == wanted))
        self._total += found.size

    def finish(self) -> float:
        """Return the share; NaN is never returned."""
        return _divide(self._right, self._total)


class MeanIouMetric:
    """Mean intersection over union of a label map."""

    def __init__(self) -> None:
        self._common: dict[int, int] = {}
        self._either: dict[int, int] = {}

    def add(self, outputs: Outputs, labels: Array) -> None:
        """Add one batch: scores N x classes x H x W or label maps N x H x W, labels N x H x W."""
        found = find_classes(_take_scores(outputs))
        if found.shape != labels.shape:
            raise InputError(
                f"miou needs label maps of the output's size: {found.shape} predictions, "
                f"{labels.shape} labels"
            )
        valid = (labels >= 0) & (labels != VOID_LABEL)
        mine, theirs = found[valid], labels[valid]
        for value in np.union1d(mine, theirs).tolist():
            left, right = mine == value, theirs == value
            common = int(np.count_nonzero(left & right))
            either = int(np.count_nonzero(left | right))
            self._common[value] = self._common.get(value, 0) + common
            self._either[value] = self._either.get(value, 0) + either

    def finish(self) -> float:
        """Return the mean over the classes that occur."""
        shares = [self._common[value] / either for value, either in self._either.items()]
        return _divide(math.fsum(shares), len(shares))


class FunctionMetric:
    """A function of all outputs and all labels; keeps them until it is called, once."""

    def __init__(self, function: MetricFunction, name: str) -> None:
        self._function = function
        self._name = name
        self._outputs: dict[str, list[Array]] = {}
        self._labels: list[Array] = []

    def add(self, outputs: Outputs, labels: Array) -> None:
        """Add one batch."""
        for name, array in outputs.items():
            self._outputs.setdefault(name, []).append(np.array(array))
        self._labels.append(labels)

    def finish(self) -> float:
        """Call the function.

        Raises:
            InputError: It returns something else than a finite number.
        """
        outputs = {name: np.concatenate(arrays) for name, arrays in self._outputs.items()}
        value: object = self._function(outputs, np.concatenate(self._labels))
        if not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"metric {self._name} returned {value!r}, not a finite number")
        return float(value)


BUILT_IN: dict[str, Callable[[], MetricAccumulator]] = {"top1": Top1Metric, "miou": MeanIouMetric}


def load_task_metric(name: str) -> Callable[[], MetricAccumulator]:
    """Return a factory of accumulators for ``top1``, ``miou`` or ``module:function``.

    Raises:
        UsageError: It is neither, or the module has no such function.
        MissingDependencyError: The module cannot be imported.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise UsageError(
            f"{name!r} is no metric: give {', '.join(BUILT_IN)} or an entry point module:function"
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise MissingDependencyError(
            f"metric {name!r}: module {module_name!r} cannot be imported: {error}",
            hint="Is its folder on PYTHONPATH?",
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise UsageError(f"metric {name!r}: module {module_name!r} has no function {attribute!r}")
    return lambda: FunctionMetric(function, name)


def measure_task_metric(
    name: str, reference: Runner, candidate: Runner, samples: LabelledFeeds, *, max_drop: float
) -> TaskMetric:
    """Measure a metric of both models on the same samples.

    Args:
        name: ``top1``, ``miou`` or ``module:function``.
        reference: The FP32 baseline.
        candidate: The model under test.
        samples: Feeds and their labels, iterated once.
        max_drop: Largest allowed fall of the metric, in its own unit.

    Raises:
        UsageError: There is no such metric, or ``max_drop`` is negative.
        InputError: There are no samples, or labels do not fit the outputs.
    """
    if not max_drop >= 0:
        raise UsageError(f"the largest drop of a metric is 0 or more, not {max_drop}")
    make = load_task_metric(name)
    mine, theirs = make(), make()
    count = 0
    for feeds, labels in samples:
        mine.add(reference(feeds), labels)
        theirs.add(candidate(feeds), labels)
        count += 1
    if count == 0:
        raise InputError(f"metric {name}: there are no samples with labels")
    before, after = mine.finish(), theirs.finish()
    # Shares of counts are not exact in FP64; a drop of exactly the limit passes.
    slack = 1e-12 * max(1.0, abs(before))
    verdict = Verdict.PASS if before - after <= max_drop + slack else Verdict.FAIL
    return TaskMetric(name, before, after, max_drop, verdict)


def find_classes(scores: Array) -> Array:
    """Return the arg max over the class axis; integers are taken for classes already.

    The class axis is the last one of vectors per sample, and axis 1 of maps (N x classes x H x W).
    """
    if scores.dtype.kind in "iub":
        return scores
    if scores.ndim == 0:
        raise InputError("a metric needs class scores; the output is a single number")
    axis = 1 if scores.ndim >= _IMAGE_RANK else scores.ndim - 1
    return np.asarray(np.argmax(scores.astype(np.float32), axis=axis))


def _take_scores(outputs: Outputs) -> Array:
    return next(iter(outputs.values()))


def _divide(part: float, whole: float) -> float:
    if not whole:
        raise InputError("the metric has no labelled element to look at")
    return part / whole


def iterate_labelled(
    source: SampleSource, data: Path, shapes: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[Feeds, Array]]:
    """Yield feeds and their labels, batch by batch.

    Args:
        source: Opened from ``data``.
        data: An ``.npz`` file, or a folder of them.
        shapes: Of the inputs; their batch is the largest of a run.

    Raises:
        InputError: There are no labels, or not as many as samples.
    """
    labels = {path: _read_labels(path) for path in _list_files(data)}
    for batch in source.iterate_batches(shapes):
        rows = []
        for sample in batch.samples:
            found = labels[Path(sample.file)]
            if sample.index >= len(found):
                raise InputError(
                    f"{sample.file} has {len(found)} labels and more samples than that",
                    hint=f"Give one entry of {LABELS!r} per sample.",
                )
            rows.append(found[sample.index])
        yield batch.feeds, np.stack(rows)


def _list_files(data: Path) -> list[Path]:
    return [data] if data.is_file() else sorted(data.glob("*.npz"))


def _read_labels(path: Path) -> Array:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            if LABELS in archive.files:
                found: Array = archive[LABELS]
                return np.atleast_1d(found)
    raise InputError(
        f"{path} has no array {LABELS!r}, which the metric needs",
        hint=f"numpy.savez(path, <input>=samples, {LABELS}=labels)",
    )
