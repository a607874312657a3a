"""A user's sample inputs: ``.npz``, ``.npy``, a folder of them, or a folder of images."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trtdeploy.config.batch_layout import find_batch
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.errors import InputError
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.samples.arrays import ARRAY_SUFFIXES, ArrayFile
from trtdeploy.samples.columns import ColumnPlanner, FilePlan
from trtdeploy.samples.images import IMAGE_SUFFIXES, ImageSource
from trtdeploy.samples.source import OnNonfinite, Sample, SampleId, SampleSource, raise_problems

_EXPECTED = f"{', '.join((*ARRAY_SUFFIXES, *IMAGE_SUFFIXES))}, or a folder of arrays or of images"
_HINT = "Write it with numpy.savez(path, input_name=array, ...), one sample per row of each array."


def open_samples(
    path: str | os.PathLike[str],
    inputs: Sequence[TensorSpec],
    preprocessing: PreprocessingSection | None = None,
    *,
    on_nonfinite: OnNonfinite = "error",
) -> SampleSource:
    """Open sample inputs and check that they fit the model; data is read later, bit by bit.

    An ``.npz`` file has one array per input. Along an input's batch axis (the dynamic axis named
    like one, else the dynamic first axis) the array holds samples; one sample without that axis is
    fine too. An input without a batch axis is shared by all samples of a file, unless its array
    has one more axis in front, which then counts samples. An ``.npy`` file does for a model with
    one input.

    Args:
        path: File or folder; a folder of images is searched with everything below it.
        inputs: What the model must be fed, e.g. ``OnnxModel.input_specs()``.
        preprocessing: How images become inputs; None assumes RGB pixels times 1/255, and refuses
            8-bit arrays for a float input.
        on_nonfinite: ``skip`` leaves out, and counts, samples with NaN or infinity.

    Raises:
        InputError: Nothing there, or everything that does not fit: file, input, given, expected.
        MissingDependencyError: Images, and Pillow is not installed.
    """
    path = Path(path)
    if not inputs:
        raise InputError(f"{path} is of no use: the model has no inputs")
    arrays, images, others = _find_files(path)
    _check_files(path, arrays, images, inputs)
    batch_axes = find_batch(inputs)
    source: SampleSource
    if arrays:
        planner = ColumnPlanner(inputs, batch_axes, preprocessing)
        source = ArraySource(path, arrays, planner)
    else:
        source = ImageSource(path, images, inputs, batch_axes, preprocessing)
    source.on_nonfinite = on_nonfinite
    if others:
        source.notes += (f"files that are neither arrays nor images, ignored: {others}",)
    return source


def _find_files(path: Path) -> tuple[list[Path], list[Path], int]:
    """Return array files, image files, and the number of other files, hidden ones left out."""
    try:
        if path.is_dir():
            found = sorted(
                file
                for file in path.rglob("*")
                if file.is_file()
                and not any(part.startswith(".") for part in file.relative_to(path).parts)
            )
        else:
            found = [path]
            path.stat()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}", hint=f"Expected {_EXPECTED}."
        ) from error
    arrays = [file for file in found if file.suffix.lower() in ARRAY_SUFFIXES]
    images = [file for file in found if file.suffix.lower() in IMAGE_SUFFIXES]
    return arrays, images, len(found) - len(arrays) - len(images)


def _check_files(
    path: Path, arrays: list[Path], images: list[Path], inputs: Sequence[TensorSpec]
) -> None:
    if not arrays and not images:
        raise InputError(f"{path} holds no sample inputs", hint=f"Expected {_EXPECTED}.")
    if arrays and images:
        raise InputError(
            f"{path} holds arrays ({arrays[0].name}, ...) and images ({images[0].name}, ...); "
            "expected one kind",
            hint="Put them in folders of their own.",
        )
    nameless = [file for file in arrays if file.suffix.lower() == ".npy"]
    if nameless and len(inputs) > 1:
        names = ", ".join(repr(spec.name) for spec in inputs)
        raise InputError(
            f"{nameless[0]} holds one array without a name, expected one for each of {names}",
            hint="Write an .npz file: numpy.savez(path, input_name=array, ...).",
        )


class ArraySource(SampleSource):
    """``.npz`` and ``.npy`` files, opened one at a time and read one sample at a time."""

    def __init__(self, path: Path, files: Sequence[Path], planner: ColumnPlanner) -> None:
        """Check the headers of every file against the model.

        Raises:
            InputError: Lists every file that does not fit, or that no file holds a sample.
        """
        super().__init__(planner.batch_axes)
        plans, problems = _plan_files(files, planner)
        raise_problems(problems, _HINT)
        self._length = sum(plan.count for plan in plans)
        counted = f"{self._length} sample{'' if self._length == 1 else 's'}"
        self.description = f"{path} ({counted})"
        if not self._length:
            raise InputError(f"{path} holds no samples", hint=_HINT)
        # A note that many files share is worth one line.
        self.notes = tuple(dict.fromkeys(note for plan in plans for note in plan.notes))
        self._groups: dict[tuple[tuple[int, ...], ...], list[FilePlan]] = {}
        for plan in plans:
            self._groups.setdefault(plan.sample_shapes, []).append(plan)

    def __len__(self) -> int:
        """Return the number of samples in all files."""
        return self._length

    def _iterate_samples(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Sample]:
        for plans in self._groups.values():
            for plan in plans:
                for index, arrays in enumerate(plan.iterate_arrays()):
                    yield Sample(SampleId(plan.file.path, index), arrays)


def _plan_files(files: Sequence[Path], planner: ColumnPlanner) -> tuple[list[FilePlan], list[str]]:
    plans: list[FilePlan] = []
    problems: list[str] = []
    for path in files:
        file = ArrayFile(path, planner.inputs[0].name)
        try:
            headers = file.read_headers()
        except InputError as error:
            problems.append(error.message)
            continue
        plan, wrong = planner.plan(file, headers)
        problems += wrong
        if plan is not None:
            plans.append(plan)
    return plans, problems
