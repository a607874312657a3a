"""What the compiler process is asked to do, and what it achieved; both travel as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from trtdeploy.core.ranges import OptimizationProfile

if TYPE_CHECKING:
    from trtdeploy.config.deploy_profile import BuildSection  # costs the compiler process time

TENSORRT, TENSORRT_RTX = "tensorrt", "tensorrt_rtx"


@dataclass(frozen=True)
class EngineSpec:
    """What the engine is to be, wherever it is compiled.

    Attributes:
        module: ``tensorrt`` or ``tensorrt_rtx``.
        recipe: Recipe name, for people and for whoever loads the engine.
        low_dtype: Label of the narrow type the engine must contain; empty for fp32 and tf32.
        tf32: TF32 may be used inside FP32 matrix products.
        typing: ``auto`` (weak on TensorRT 8, strong elsewhere), ``weak`` or ``strong``.
        optimization_profiles: Sizes it accepts.
    """

    module: str
    recipe: str = ""
    low_dtype: str = ""
    tf32: bool = False
    typing: str = "auto"
    optimization_profiles: tuple[OptimizationProfile, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """One engine to build on this machine.

    Attributes:
        spec: What the engine is to be.
        options: Builder settings; one that a TensorRT lacks is an error there, never ignored
            silently. ``compute_capabilities`` are all it is compiled for; TensorRT-RTX only.
        model_path: The typed model.
        engine_path: Where the plan is written, whole or not at all.
        weak_flags: Builder flags of the recipe under weak typing; None if it needs strong typing.
        fp32_nodes: Nodes that must compute in FP32; pinned by name under weak typing.
        timing_cache_path: Read if present, written after the build; None for none.
        parse_only: Ask the parser and stop.
        operators: With ``parse_only``: operator names to ask about, whatever the parse says.
    """

    spec: EngineSpec
    options: BuildSection
    model_path: str
    engine_path: str = ""
    weak_flags: tuple[str, ...] | None = ()
    fp32_nodes: tuple[str, ...] = ()
    timing_cache_path: str | None = None
    parse_only: bool = False
    operators: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the request as JSON."""
        return json.dumps(asdict(self), default=vars)

    @classmethod
    def from_json(cls, text: str) -> CompileRequest:
        """Read what ``to_json`` wrote; its options are those, without their class."""
        data = json.loads(text)
        spec, options = data.pop("spec"), data.pop("options")
        profiles = map(OptimizationProfile.from_dict, spec.pop("optimization_profiles"))
        for key in ("weak_flags", "fp32_nodes", "operators"):
            data[key] = None if data[key] is None else tuple(data[key])
        return cls(
            spec=EngineSpec(**spec, optimization_profiles=tuple(profiles)),
            options=cast("BuildSection", SimpleNamespace(**options)),
            **data,
        )


@dataclass(frozen=True)
class PrecisionProof:
    """How the engine's precision was proven.

    Attributes:
        proven_by: What showed it; begins with ``nothing`` where nothing did.
        layers: Layers (or tensors) per element type, by ``trt.DataType`` names.
        per_layer: Element type by layer, where the engine tells.
    """

    proven_by: str = ""
    layers: Mapping[str, int] = field(default_factory=dict)
    per_layer: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class CompileResult:
    """What the compiler did and said.

    Attributes:
        backend: ``tensorrt`` or ``tensorrt_rtx``.
        version: TensorRT's own version string.
        typing: ``weak`` or ``strong``.
        flags: Names of the builder flags that were set.
        precision: How the precision was proven.
        warnings: Warnings of the compiler.
        parse_s: Seconds spent in the parser.
        build_s: Seconds spent in the builder.
    """

    backend: str
    version: str
    typing: str
    flags: tuple[str, ...]
    precision: PrecisionProof
    warnings: tuple[str, ...]
    parse_s: float
    build_s: float

    def __post_init__(self) -> None:
        """Refuse times that are none: reports of others are read into this class."""
        if not (0 <= self.parse_s < math.inf and 0 <= self.build_s < math.inf):
            raise ValueError("parse_s and build_s are no times")
