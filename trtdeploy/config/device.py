"""Devices: what a machine that runs an engine has, each figure with its source."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from trtdeploy.config.compute_capability import (
    Precision,
    find_precisions,
    is_tensorrt_rtx_target,
)
from trtdeploy.config.model_base import (
    ByteSize,
    ComputeCapability,
    ConfigModel,
    Flag,
    PositiveFloat,
    WholeNumber,
)

_SINGLE_FIGURES = (
    "compute_capability", "memory", "reserved_memory", "bandwidth_gb_s", "minimum_tensorrt",
)  # fmt: skip
_FIGURE_TABLES = ("tflops", "tflops_fp32_accumulate", "jetpack")


class DeviceSpec(ConfigModel):
    """One device, from ``profiles/devices/NAME.yaml``.

    Attributes:
        name: The file's stem.
        title: For people.
        kind: Family; a ``cpu`` runs ONNX Runtime only.
        compute_capability: ``MAJOR.MINOR``, None for a CPU.
        memory: Nominal memory in bytes; None when it depends on the machine.
        shared_memory: CPU and GPU use the same memory (Jetson, CPUs).
        reserved_memory: Bytes the system keeps for itself out of a shared memory.
        bandwidth_gb_s: Memory bandwidth in 10**9 bytes per second.
        tflops: Dense peak in 10**12 operations per second by precision, GPU alone (no DLA).
        tflops_fp32_accumulate: The same where FP32 accumulation is slower (GeForce).
        dla_cores: Deep-learning accelerators that software can use.
        precisions: What it computes in; follows from the compute capability unless given.
        jetpack: JetPack version to the TensorRT version it ships.
        minimum_tensorrt: Oldest TensorRT that knows the chip.
        sources: Figure to where it was read, or ``recalled``; ``tflops`` covers all of
            ``tflops.*`` that have no entry of their own.
    """

    name: str
    title: str
    kind: Literal["datacenter", "geforce", "jetson", "cpu"]
    compute_capability: ComputeCapability | None = Field(default=None, validate_default=True)
    memory: ByteSize | None = None
    shared_memory: Flag = False
    reserved_memory: ByteSize | None = None
    bandwidth_gb_s: PositiveFloat | None = None
    tflops: dict[Precision, PositiveFloat] = Field(default_factory=dict)
    tflops_fp32_accumulate: dict[Precision, PositiveFloat] = Field(default_factory=dict)
    dla_cores: WholeNumber = Field(default=0, ge=0)
    precisions: tuple[Precision, ...] = Field(default=(), validate_default=True)
    jetpack: dict[str, str] = Field(default_factory=dict)
    minimum_tensorrt: str | None = None
    sources: dict[str, str] = Field(default_factory=dict)

    @field_validator("tflops", "tflops_fp32_accumulate", "jetpack", mode="before")
    @classmethod
    def _drop_withdrawn(cls, value: object) -> object:
        # A device that extends another takes an entry back by writing null.
        if not isinstance(value, dict):
            return value
        return {key: entry for key, entry in value.items() if entry is not None}

    @field_validator("compute_capability")
    @classmethod
    def _fit_kind(cls, value: str | None, info: ValidationInfo) -> str | None:
        if "kind" in info.data and (info.data["kind"] == "cpu") != (value is None):
            raise ValueError("every GPU has a compute capability like 8.9, and a cpu has none")
        return value

    @field_validator("precisions")
    @classmethod
    def _derive_precisions(
        cls, value: tuple[Precision, ...], info: ValidationInfo
    ) -> tuple[Precision, ...]:
        capability = info.data.get("compute_capability")
        derived = find_precisions(capability) if capability else ()
        if "compute_capability" in info.data and not (value or derived):
            raise ValueError("cannot be derived from the compute capability: list them")
        return value or derived

    @property
    def tensorrt_rtx(self) -> bool:
        """Whether TensorRT-RTX can compile for this device."""
        return is_tensorrt_rtx_target(self.compute_capability)

    @property
    def usable_memory_bytes(self) -> int | None:
        """Memory without what the system keeps for itself, in bytes."""
        return None if self.memory is None else self.memory - (self.reserved_memory or 0)

    @property
    def figures(self) -> tuple[str, ...]:
        """Dotted names of all figures this device states."""
        single = [name for name in _SINGLE_FIGURES if getattr(self, name) is not None]
        if self.kind == "jetson":
            single.append("dla_cores")
        tabled = [f"{table}.{key}" for table in _FIGURE_TABLES for key in getattr(self, table)]
        return (*single, *tabled)

    def find_source(self, figure: str) -> str | None:
        """Return where a figure was read, or None when the file does not say."""
        return self.sources.get(figure) or self.sources.get(figure.partition(".")[0])
