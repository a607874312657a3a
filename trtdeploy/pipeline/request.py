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
        data: An ``.npz`` file of sample inputs, to measure ranges with; None measures nothing.
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
    prepare_only: bool = False
    rebuild: bool = False
    check_parity: bool = True
