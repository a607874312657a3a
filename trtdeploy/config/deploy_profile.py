"""Deploy profiles: device, backend, recipe, build options, shapes and tolerance."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator

from trtdeploy.config.calibration import CalibrationSection
from trtdeploy.config.model_base import (
    ByteSize,
    ComputeCapability,
    ConfigModel,
    Flag,
    PositiveFloat,
    Tolerance,
    WholeNumber,
)
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.config.recipe import RECIPES, RecipeName
from trtdeploy.config.shape_table import NamedShapeTable, ShapesSection
from trtdeploy.core.names import suggest_name

Backend = Literal["tensorrt", "tensorrt_rtx", "onnxruntime"]
Typing = Literal["auto", "strong", "weak"]
HardwareCompatibility = Literal["none", "ampere_plus", "same_compute_capability"]

_NO_RECIPE = {
    "int4": "INT4 is weight-only and has no recipe here; use int8 or fp8",
    "fp4": "FP4 has no recipe here; use fp8",
}


def _require_recipe(name: RecipeName) -> RecipeName:
    if name not in RECIPES:
        unknown = f"{name!r} is not known. {suggest_name(name, RECIPES)}"
        raise ValueError(_NO_RECIPE.get(name, unknown))
    return name


NodePrecision = Literal["fp32", "fp16", "int8", "fp8", "fp8-e5m2"]
NonEmptyText = Annotated[str, StringConstraints(min_length=1)]


class PrecisionSection(ConfigModel):
    """How the recipe is applied.

    Attributes:
        keep_fp32: Node names or glob patterns that stay FP32.
        nodes: Precision by node name, glob pattern or ``op:Operator``, where the recipe's own
            choice is not wanted; ``fp16`` leaves a node unquantized.
        io: ``keep`` leaves the model's inputs and outputs at their types, ``recipe`` changes them.
    """

    keep_fp32: tuple[NonEmptyText, ...] = ()
    nodes: dict[NonEmptyText, NodePrecision] = Field(default_factory=dict)
    io: Literal["keep", "recipe"] = "keep"

    def list_pins(self) -> tuple[str, ...]:
        """Return what ``--pin`` would be given for the same effect."""
        return (*self.keep_fp32, *(f"{kind}:{pattern}" for pattern, kind in self.nodes.items()))


class BuildSection(ConfigModel):
    """What the engine builder is told. Names follow TensorRT's own.

    Attributes:
        workspace: Limit of scratch memory in bytes; None leaves the builder's own limit.
        optimization_level: 0 (fast build) to 5 (long search); None is the builder's default.
        aux_streams: Most auxiliary CUDA streams; None lets the builder choose.
        timing_cache: Load and save a timing cache.
        sparse_weights: Allow 2:4 sparse kernels.
        hardware_compatibility: Which other GPUs the engine must run on.
        version_compatible: The engine must load in later TensorRT versions.
        exclude_lean_runtime: Leave the lean runtime out of a version-compatible engine.
        weight_streaming: Weights may stay in host memory.
        strip_plan: Leave refittable weights out of the engine.
        refit: Weights can be replaced later.
        dla_core: DLA to compile for, counted from 0; None compiles for the GPU.
        gpu_fallback: Layers that the DLA refuses may run on the GPU.
        debug_precision: Detailed verbosity and the DEBUG flag, to hunt precision errors.
        compute_capabilities: More GPUs for one TensorRT-RTX engine, beside the device's own.
        timeout_s: Seconds after which the compiler counts as hung; None waits for ever.
    """

    workspace: ByteSize | None = None
    optimization_level: WholeNumber | None = Field(default=None, ge=0, le=5)
    aux_streams: WholeNumber | None = Field(default=None, ge=0, le=2**31 - 1)
    timing_cache: Flag = True
    sparse_weights: Flag = False
    hardware_compatibility: HardwareCompatibility = "none"
    version_compatible: Flag = False
    exclude_lean_runtime: Flag = False
    weight_streaming: Flag = False
    strip_plan: Flag = False
    refit: Flag = False
    dla_core: WholeNumber | None = Field(default=None, ge=0)
    gpu_fallback: Flag = False
    debug_precision: Flag = False
    compute_capabilities: tuple[ComputeCapability, ...] = ()
    timeout_s: PositiveFloat | None = 3600.0


class ParitySection(ConfigModel):
    """Tolerances that replace those of the recipe; None keeps the recipe's own."""

    atol: Tolerance | None = None
    rtol: Tolerance | None = None


class DeployProfile(ConfigModel):
    """One deploy profile, from ``profiles/NAME.yaml`` or a file of the user.

    Attributes:
        name: The file's stem; names the output folder.
        title: For people.
        device: Shipped device name, or path of a device file.
        backend: What compiles and runs the model.
        recipe: How precision is written into the model.
        typing: ``auto`` is weak on TensorRT 8.6, which has no other, and strong elsewhere.
        precision: How the recipe is applied.
        build: What the engine builder is told.
        shapes: Sizes that hold for every optimization profile.
        optimization_profiles: Several profiles in one engine, each over ``shapes``.
        parity: Tolerances.
        calibration: How the amax of quantized tensors is chosen.
        preprocessing: How image files become inputs; None when the profile does not say.
    """

    name: str
    title: str = ""
    device: NonEmptyText
    backend: Backend
    recipe: Annotated[RecipeName, AfterValidator(_require_recipe)]
    typing: Typing = "auto"
    precision: PrecisionSection = PrecisionSection()
    build: BuildSection = BuildSection()
    shapes: ShapesSection = ShapesSection()
    optimization_profiles: tuple[NamedShapeTable, ...] = ()
    parity: ParitySection = ParitySection()
    calibration: CalibrationSection = CalibrationSection()
    preprocessing: PreprocessingSection | None = None

    @field_validator("optimization_profiles")
    @classmethod
    def _names_differ(cls, value: tuple[NamedShapeTable, ...]) -> tuple[NamedShapeTable, ...]:
        names = [entry.name for entry in value if entry.name is not None]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"names must differ; used twice: {', '.join(map(repr, twice))}")
        return value
