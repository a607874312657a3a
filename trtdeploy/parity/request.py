"""What a parity check is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trtdeploy.backends.session import Session
from trtdeploy.config.deploy_profile import DeployProfile
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.typing_options import TypingOptions
from trtdeploy.samples.source import OnNonfinite

SessionOpener = Callable[[Path], Session]
"""Opens the engine of an output folder on this machine's own GPU."""


@dataclass(frozen=True)
class ParityRequest:
    """One parity check; ``dataclasses.replace`` changes what is compared on, and how.

    Attributes:
        reference: The FP32 model.
        candidate: The typed model; emulated when no engine is run.
        options: What the candidate was typed with; the recipe decides the tolerances, and the
            expectation is typed the same way.
        optimization_profiles: Their corners are run.
        data: Samples (npz, npy, folder); None makes them up.
        preprocessing: How images become inputs; None assumes RGB pixels times 1/255.
        on_nonfinite: What becomes of samples with NaN or infinity.
        most_samples: How many of them are run at most; None runs all.
        atol: Replaces the recipe's absolute tolerance.
        rtol: Replaces the recipe's relative tolerance.
        match_rows: Rows of the outputs have no fixed order (detections after NMS).
        metric: Task metric: ``top1``, ``miou`` or ``module:function``; empty for none.
        max_drop: How far the metric may fall.
        is_ours: The candidate was just made by this recipe from this reference; it cannot serve
            as the expectation of itself.
        open_engine: Opens the candidate's engine; None emulates.
    """

    reference: OnnxModel
    candidate: OnnxModel
    options: TypingOptions
    optimization_profiles: tuple[OptimizationProfile, ...]
    data: Path | None = None
    preprocessing: PreprocessingSection | None = None
    on_nonfinite: OnNonfinite = "error"
    most_samples: int | None = None
    atol: float | None = None
    rtol: float | None = None
    match_rows: bool = False
    metric: str = ""
    max_drop: float = 0.0
    is_ours: bool = False
    open_engine: Callable[[], Session] | None = None

    @classmethod
    def from_profile(
        cls,
        reference: OnnxModel,
        candidate: OnnxModel,
        profile: DeployProfile,
        options: TypingOptions,
        optimization_profiles: tuple[OptimizationProfile, ...],
    ) -> ParityRequest:
        """Return the check of a candidate, with the tolerances and preprocessing of its profile."""
        return cls(
            reference,
            candidate,
            options,
            optimization_profiles,
            preprocessing=profile.preprocessing,
            atol=profile.parity.atol,
            rtol=profile.parity.rtol,
        )
