"""What a build is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trtdeploy.precision.typing_source import TypingRequest


@dataclass(frozen=True)
class BuildRequest(TypingRequest):
    """One build.

    ``model`` may also be a prepared output folder; then ``profile`` is empty. Without ``data``,
    parity's inputs are made up.

    Attributes:
        output_dir: Where the result goes; None makes ``<model>.<profile>`` in the current folder.
        prepare_only: Do everything but compiling, and call that a success.
        rebuild: Build even if the same result is already there.
        check_parity: Compare with the FP32 reference at every point of the optimization profiles.
    """

    output_dir: Path | None = None
    prepare_only: bool = False
    rebuild: bool = False
    check_parity: bool = True

    def list_data(self) -> tuple[Path, ...]:
        """Return every file or folder of sample inputs that was given."""
        return (*self.calibration_data, *([] if self.data is None else [self.data]))
