"""What a GPU generation can do, by its compute capability."""

from __future__ import annotations

from typing import Final, Literal

Precision = Literal["fp32", "tf32", "fp16", "bf16", "int8", "fp8", "fp4"]

PRECISIONS: Final[tuple[Precision, ...]] = (
    "fp32", "tf32", "fp16", "bf16", "int8", "fp8", "fp4",
)  # fmt: skip

TENSORRT_RTX_TARGETS: Final = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
"""Members of ``tensorrt_rtx.ComputeCapability`` in 1.7.1; no 8.7 (Orin), 9.0 (H100) or 11.0."""

_NEWEST_KNOWN = (12, 1)
# First compute capability that runs each precision in TensorRT. Sources: TensorRT-RTX and
# TransformerEngine support matrices (8.x before 8.9 has no FP8, FP4 starts at 10.0); FP8 on 8.6
# refused by the RTX compiler (measured); "Orin: FP16, INT8 and INT4 only" (TensorRT-Edge-LLM);
# TF32 and BF16 from Ampere on.
_FIRST_WITH: Final[dict[Precision, tuple[int, int]]] = {
    "fp32": (0, 0),
    "tf32": (8, 0),
    "fp16": (7, 0),
    "bf16": (8, 0),
    "int8": (7, 5),
    "fp8": (8, 9),
    "fp4": (10, 0),
}


def parse_compute_capability(text: str) -> tuple[int, int]:
    """Return ``(8, 9)`` for ``"8.9"``."""
    major, minor = text.split(".")
    return int(major), int(minor)


def find_precisions(compute_capability: str) -> tuple[Precision, ...]:
    """Return the precisions of a GPU; empty for a GPU newer than this table."""
    version = parse_compute_capability(compute_capability)
    if version > _NEWEST_KNOWN:
        return ()
    return tuple(name for name in PRECISIONS if version >= _FIRST_WITH[name])


def find_first_compute_capability(precision: Precision) -> str:
    """Return the oldest compute capability with ``precision``, e.g. ``"8.9"`` for fp8."""
    major, minor = _FIRST_WITH[precision]
    return f"{major}.{minor}"


def is_tensorrt_rtx_target(compute_capability: str | None) -> bool:
    """Tell whether TensorRT-RTX can compile for this compute capability."""
    return compute_capability in TENSORRT_RTX_TARGETS
