"""What a model is typed from: what a person gives, and what that comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.config.shape_table import ShapeTable
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.typing_options import TypingOptions


@dataclass(frozen=True)
class TypingRequest:
    """A model, a deploy profile, and samples.

    Attributes:
        model: An ONNX file.
        profile: Name or path of a deploy profile.
        overrides: ``--set`` texts.
        shapes: Sizes given on the command line.
        pins: What is pinned, on top of the profile's pins.
        data: Sample inputs to measure ranges and compare outputs with; None measures nothing.
        calibration_data: Sample inputs, or earlier ``calibration.json`` files, that the amax
            of quantized tensors comes from.
        synthetic_calibration: Make calibration inputs up where there is no data; flagged.
    """

    model: Path
    profile: str = ""
    overrides: tuple[str, ...] = ()
    shapes: ShapeTable = field(default_factory=ShapeTable)
    pins: tuple[str, ...] = ()
    data: Path | None = None
    calibration_data: tuple[Path, ...] = ()
    synthetic_calibration: bool = False

    @property
    def calibration_samples(self) -> tuple[Path, ...]:
        """The calibration data that are samples, not files of earlier calibrations."""
        return tuple(p for p in self.calibration_data if p.suffix.lower() != ".json")


@dataclass(frozen=True)
class TypingSource:
    """Everything that ranges and amax are measured with.

    Attributes:
        request: Holds the samples.
        options: Its recipe and pins; nothing measured yet.
        sizes: The usual ones are run.
    """

    request: TypingRequest
    profile: DeployProfile
    options: TypingOptions
    model: OnnxModel
    sizes: OptimizationProfile
