"""Array files as samples of a model's inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from trtdeploy.core.errors import InputError
from trtdeploy.samples.arrays import ArrayFile
from trtdeploy.samples.columns import ColumnPlanner
from trtdeploy.samples.plan import FilePlan
from trtdeploy.samples.problems import raise_problems
from trtdeploy.samples.source import Sample, SampleId, SampleSource

_HINT = "Write it with numpy.savez(path, input_name=array, ...), one sample per row of each array."


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
