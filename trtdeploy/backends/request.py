"""What the compiler process is asked to do, as plain data that travels as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trtdeploy.core.ranges import POINTS

TENSORRT, TENSORRT_RTX = "tensorrt", "tensorrt_rtx"


@dataclass(frozen=True)
class CompileOptions:
    """Builder settings; a setting that a TensorRT lacks is an error there, never ignored silently.

    Attributes:
        workspace_bytes: Limit of the workspace memory pool; None leaves TensorRT's default.
        optimization_level: 0 (fast build) to 5 (fast engine); None leaves the default.
        aux_streams: Most auxiliary CUDA streams; None leaves the default.
        hardware_compatibility: ``none``, ``ampere_plus`` or ``same_compute_capability``.
        dla_core: DLA core to build for; None builds for the GPU.
        compute_capabilities: Names like ``SM89``; TensorRT-RTX only.
    """

    workspace_bytes: int | None = None
    optimization_level: int | None = None
    aux_streams: int | None = None
    sparse_weights: bool = False
    hardware_compatibility: str = "none"
    version_compatible: bool = False
    exclude_lean_runtime: bool = False
    weight_streaming: bool = False
    strip_plan: bool = False
    refit: bool = False
    dla_core: int | None = None
    gpu_fallback: bool = False
    debug_precision: bool = False
    compute_capabilities: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompileRequest:
    """One engine to build.

    Attributes:
        module: ``tensorrt`` or ``tensorrt_rtx``.
        model_path: The typed model.
        engine_path: Where the plan is written, whole or not at all.
        recipe: Recipe name, for people and for whoever loads the engine.
        weak_flags: Builder flags of the recipe under weak typing; None if it needs strong typing.
        low_dtype: Label of the narrow type the engine must contain; empty for fp32 and tf32.
        tf32: TF32 may be used inside FP32 matrix products.
        typing: ``auto`` (weak on TensorRT 8, strong elsewhere), ``weak`` or ``strong``.
        fp32_nodes: Nodes that must compute in FP32; pinned by name under weak typing.
        optimization_profiles: As ``OptimizationProfile.to_dict`` writes them.
        timing_cache_path: Read if present, written after the build; None for none.
        parse_only: Ask the parser and stop.
        operators: With ``parse_only``: operator names to ask about, whatever the parse says.
    """

    module: str
    model_path: str
    engine_path: str
    recipe: str = ""
    weak_flags: tuple[str, ...] | None = ()
    low_dtype: str = ""
    tf32: bool = False
    typing: str = "auto"
    fp32_nodes: tuple[str, ...] = ()
    optimization_profiles: tuple[dict[str, Any], ...] = ()
    timing_cache_path: str | None = None
    parse_only: bool = False
    operators: tuple[str, ...] = ()
    options: CompileOptions = field(default_factory=CompileOptions)

    def to_json(self) -> str:
        """Return the request as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> CompileRequest:
        """Read what ``to_json`` wrote."""
        data = json.loads(text)
        options = data.pop("options")
        options["compute_capabilities"] = tuple(options["compute_capabilities"])
        for key in ("weak_flags", "fp32_nodes", "optimization_profiles", "operators"):
            data[key] = None if data[key] is None else tuple(data[key])
        return cls(**data, options=CompileOptions(**options))


def read_points(table: dict[str, list[int]]) -> tuple[tuple[int, ...], ...]:
    """Return the (min, opt, max) tuples of one entry."""
    return tuple(tuple(table[point]) for point in POINTS)


@dataclass(frozen=True)
class CompileResult:
    """What the compiler process achieved.

    Attributes:
        engine_path: The plan.
        version: TensorRT's own version string.
        flags: Names of the builder flags that were set.
        typing: ``weak`` or ``strong``.
        precision: How the precision was proven, and the count per type.
        warnings: Distinct warnings of the compiler.
        parse_s: Seconds spent in the parser.
        build_s: Seconds spent in the builder.
    """

    engine_path: Path
    version: str
    flags: tuple[str, ...]
    typing: str
    precision: dict[str, Any]
    warnings: tuple[str, ...]
    parse_s: float
    build_s: float
