"""What a search for pins runs: a few samples and what FP32 makes of them, kept on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from trtdeploy.core.arrays import Array, Feeds, Outputs, Runner


@dataclass(frozen=True)
class RecordedRun:
    """One run.

    Attributes:
        reference: What the FP32 model returns.
        labels: For a task metric; None without one.
    """

    feeds: Feeds
    reference: Outputs
    labels: Array | None = None


class RecordedRuns:
    """Runs that are read again and again, one at a time.

    Args:
        folder: Where they are written, and the models that are run; it must stay.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: list[Path] = []

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self._files)

    def record(
        self, runs: Iterable[tuple[Feeds, Array | None]], reference: Runner, most: int | None
    ) -> None:
        """Run the reference on at most so many feeds, and keep both."""
        for feeds, labels in islice(runs, most):
            outputs = reference(feeds)
            arrays = {f"feed:{name}": values for name, values in feeds.items()}
            arrays |= {f"output:{name}": values for name, values in outputs.items()}
            if labels is not None:
                arrays["labels:"] = labels
            path = self.folder / f"run{len(self._files)}.npz"
            # positions instead of names: a tensor may be called anything, a file may not
            np.savez(path, np.array(list(arrays)), *arrays.values())
            self._files.append(path)

    def __iter__(self) -> Iterator[RecordedRun]:
        """Yield every run."""
        for path in self._files:
            with np.load(path, allow_pickle=False) as archive:
                names = archive["arr_0"].tolist()
                arrays = {name: archive[f"arr_{i}"] for i, name in enumerate(names, start=1)}
            yield RecordedRun(
                _take(arrays, "feed:"), _take(arrays, "output:"), arrays.get("labels:")
            )


def _take(arrays: dict[str, Array], kind: str) -> dict[str, Array]:
    return {n.removeprefix(kind): values for n, values in arrays.items() if n.startswith(kind)}
