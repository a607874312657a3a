"""What a parity check is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.backends.session import Session
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.parity.samples_source import OnNonfinite

SessionOpener = Callable[[Path], Session]
"""Opens the engine of an output folder on this machine's own GPU."""


@dataclass(frozen=True)
class JudgementOptions:
    """How outputs are judged.

    Attributes:
        atol: Replaces the recipe's absolute tolerance.
        rtol: Replaces the recipe's relative tolerance.
        match_rows: Rows of the outputs have no fixed order (detections after NMS).
        metric: Task metric: ``top1``, ``miou`` or ``module:function``; empty for none.
        max_drop: How far the metric may fall.
    """

    atol: float | None = None
    rtol: float | None = None
    match_rows: bool = False
    metric: str = ""
    max_drop: float = 0.0


@dataclass(frozen=True)
class ParityRequest:
    """One parity check.

    Attributes:
        reference: The FP32 ONNX model.
        candidate: The typed ONNX model that is emulated when no engine is run.
        recipe: Decides the tolerances.
        optimization_profiles: Their corners are run.
        pins: What the recipe was told about single nodes; the expectation is told the same.
        thresholds: Clipping magnitudes the candidate was quantized with; None when not known, or
            nothing was quantized.
        is_weak: The candidate is for a weakly typed network.
        keep_io: Inputs and outputs keep their types.
        is_ours: The candidate was just made by this recipe from this reference; it cannot serve
            as the expectation of itself.
        data: Samples (npz, npy, folder); None makes them up.
        on_nonfinite: What becomes of samples with NaN or infinity.
        most_samples: How many of them are run at most; None runs all.
        preprocessing: For images.
        judgement: How outputs are judged.
        engine_folder: Output folder whose engine is run instead of the emulation.
        open_engine: Opens that engine; None emulates.
    """

    reference: Path
    candidate: Path
    recipe: str
    optimization_profiles: tuple[OptimizationProfile, ...]
    pins: tuple[str, ...] = ()
    thresholds: Mapping[str, float] | None = None
    is_weak: bool = False
    keep_io: bool = True
    is_ours: bool = False
    data: Path | None = None
    on_nonfinite: OnNonfinite = "error"
    most_samples: int | None = None
    preprocessing: PreprocessingSection | None = None
    judgement: JudgementOptions = field(default_factory=JudgementOptions)
    engine_folder: Path | None = None
    open_engine: SessionOpener | None = None
