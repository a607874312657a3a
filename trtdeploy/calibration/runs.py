"""What calibration feeds a model: one sample at a time wherever the model allows it."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trtdeploy.config.batch_layout import find_free_batch
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.arrays import Array
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.graph.hashing import compute_build_key, hash_data
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.samples.opening import open_samples
from trtdeploy.samples.source import OnNonfinite, SampleSource
from trtdeploy.samples.synthetic.making import make_synthetic_feeds


@dataclass(frozen=True)
class CalibrationRun:
    """Feeds of one run.

    Attributes:
        feeds: One array per input.
        samples: Name of each sample: its row, when there are several.
        padding: Rows at the end that repeat earlier ones.
    """

    feeds: dict[str, Array]
    samples: tuple[str, ...]
    padding: int = 0


class SampleSet:
    """A user's samples. A free batch axis gets size 1, so that results know no batches.

    Args:
        path: What ``--calib`` was given.
        inputs: The model's.
        optimization_profile: Gives images and such their sizes.
        preprocessing: For images.
        on_nonfinite: What becomes of samples with NaN or infinity.
    """

    is_synthetic = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        inputs: Sequence[TensorSpec],
        optimization_profile: OptimizationProfile,
        preprocessing: PreprocessingSection | None,
        on_nonfinite: OnNonfinite,
    ) -> None:
        self._source: SampleSource = open_samples(
            path, inputs, preprocessing, on_nonfinite=on_nonfinite
        )
        self._shapes = find_single_shapes(inputs, optimization_profile)
        self._path = Path(path)
        self.description = self._source.description

    def __len__(self) -> int:
        """Return the number of samples, bad ones included."""
        return len(self._source)

    @cached_property
    def sha256(self) -> str:
        """Over names and contents of the files."""
        return hash_data(self._path)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, one sentence each."""
        return self._source.notes

    @property
    def skipped(self) -> tuple[str, ...]:
        """Samples left out so far, and why."""
        return tuple(str(bad) for bad in self._source.skipped)

    def iterate_runs(self) -> Generator[CalibrationRun, None, None]:
        """Yield every usable sample."""
        for batch in self._source.iterate_batches(self._shapes):
            names = tuple(str(sample) for sample in batch.samples)
            yield CalibrationRun(batch.feeds, names, batch.padding)


class SyntheticSet:
    """Made-up samples, one per seed: they let a pipeline run and prove no accuracy.

    Args:
        model: Normalised.
        optimization_profile: Gives sizes, and the contents of shape tensors.
        count: How many.
    """

    is_synthetic = True
    skipped: tuple[str, ...] = ()

    def __init__(
        self, model: OnnxModel, optimization_profile: OptimizationProfile, count: int
    ) -> None:
        self._index = build_index(model)
        self._shapes = find_single_shapes(model.input_specs(), optimization_profile)
        self._values = {name: v.opt for name, v in optimization_profile.values.items()}
        self._count = count
        self.description = f"synthetic ({count} sample{'' if count == 1 else 's'})"
        self.notes = make_synthetic_feeds(self._index, self._shapes, self._values).notes

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._count

    @property
    def sha256(self) -> str:
        """Over everything that decides what is made up for a model."""
        sizes = {name: list(shape) for name, shape in self._shapes.items()}
        values = {name: list(each) for name, each in self._values.items()}
        return compute_build_key({"synthetic": self._count, "shapes": sizes, "values": values})

    def iterate_runs(self) -> Generator[CalibrationRun, None, None]:
        """Yield the samples, the same ones each time."""
        for seed in range(self._count):
            made = make_synthetic_feeds(self._index, self._shapes, self._values, seed=seed)
            yield CalibrationRun(made.feeds, (made.description,))


def find_single_shapes(
    inputs: Sequence[TensorSpec], optimization_profile: OptimizationProfile
) -> dict[str, tuple[int, ...]]:
    """Return the usual shape of every input, with one sample where the batch is free."""
    batch = find_free_batch(inputs)
    shapes = {}
    for name, sizes in optimization_profile.shapes.items():
        axis = batch.inputs.get(name) if batch else None
        shapes[name] = tuple(1 if i == axis else size for i, size in enumerate(sizes.opt))
    return shapes
