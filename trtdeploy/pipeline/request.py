"""What a build is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.config.shape_table import ShapeTable


@dataclass(frozen=True)
class BuildRequest:
    """One build.

    Attributes:
        model: An ONNX file, or a prepared output folder.
        profile: Name or path of a deploy profile; empty for a prepared folder.
        overrides: ``--set`` texts.
        shapes: Sizes given on the command line.
        output_dir: Where the result goes; None makes ``<model>.<profile>`` in the current folder.
        pins: Patterns of nodes to keep FP32, on top of the profile's.
        data: Sample inputs to measure ranges and parity with; None measures nothing and makes
            parity's inputs up.
        calibration_data: Sample inputs, or earlier ``calibration.json`` files, that thresholds of
            quantized tensors come from.
        synthetic_calibration: Make calibration inputs up where there is no data; flagged.
        prepare_only: Do everything but compiling, and call that a success.
        rebuild: Build even if the same result is already there.
        check_parity: Compare with the FP32 reference at every point of the optimization profiles.
    """

    model: Path
    profile: str = ""
    overrides: tuple[str, ...] = ()
    shapes: ShapeTable = field(default_factory=ShapeTable)
    output_dir: Path | None = None
    pins: tuple[str, ...] = ()
    data: Path | None = None
    calibration_data: tuple[Path, ...] = ()
    synthetic_calibration: bool = False
    prepare_only: bool = False
    rebuild: bool = False
    check_parity: bool = True

    def list_data(self) -> tuple[Path, ...]:
        """Return every file or folder of sample inputs that was given."""
        return (*self.calibration_data, *([] if self.data is None else [self.data]))
