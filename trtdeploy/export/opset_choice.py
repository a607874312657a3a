"""Which operator set a file gets."""

from __future__ import annotations

from typing import Final

from trtdeploy.config.loading import ResolvedProfile, load_deploy_profile

OLD_TENSORRT_OPSET: Final = 17
"""What the parser of TensorRT 8.6 reads (onnx-tensorrt 8.6, operators.md)."""
USUAL_OPSET: Final = 20
"""Read by TensorRT 10 and 11, TensorRT-RTX and ONNX Runtime 1.22; the first with Gelu."""


def choose_opset(asked: int | None, profile: str) -> tuple[int, str]:
    """Return the opset to write, and why: the one asked for, or what the deploy profile needs.

    Raises:
        DeployProfileError: There is no such profile, or it is wrong.
    """
    resolved = load_deploy_profile(profile) if profile else None
    if asked is not None:
        return asked, "asked for"
    if resolved is None:
        return USUAL_OPSET, "for TensorRT 10 and newer; --opset 17 or --profile for TensorRT 8.6"
    if _may_meet_tensorrt_8(resolved):
        return OLD_TENSORRT_OPSET, f"{resolved.name} may meet TensorRT 8.6"
    return USUAL_OPSET, f"for {resolved.name}"


def _may_meet_tensorrt_8(resolved: ResolvedProfile) -> bool:
    if resolved.profile.backend != "tensorrt":
        return False
    shipped = resolved.device.jetpack.values()
    return resolved.profile.typing == "weak" or any(text.startswith("8.") for text in shipped)
