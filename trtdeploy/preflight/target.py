"""What a model is checked for."""

from __future__ import annotations

from dataclasses import dataclass

from trtdeploy.backends.installed import find_installed
from trtdeploy.config.loading import ResolvedProfile
from trtdeploy.config.recipe import FP32, Recipe, find_recipe

BACKEND_TITLES = {
    "tensorrt": "TensorRT",
    "tensorrt_rtx": "TensorRT-RTX",
    "onnxruntime": "ONNX Runtime",
}


@dataclass(frozen=True)
class CheckTarget:
    """The engine a model is meant for.

    Attributes:
        backend: ``tensorrt``, ``tensorrt_rtx`` or ``onnxruntime``.
        tensorrt_version: Version of the backend, e.g. ``10.3``; None when it is not known yet.
        recipe: What the precision of the engine will be.
        device_title: The device as people call it.
        max_opset: Highest operator set the target documents; None takes it from the shipped table.
    """

    backend: str
    tensorrt_version: str | None = None
    recipe: Recipe = FP32
    device_title: str = ""
    max_opset: int | None = None

    @classmethod
    def from_profile(cls, resolved: ResolvedProfile) -> CheckTarget:
        """Return the engine that a deploy profile asks for."""
        backend = resolved.profile.backend
        return cls(
            backend=backend,
            tensorrt_version=None if backend == "onnxruntime" else _find_version(resolved),
            recipe=find_recipe(resolved.profile.recipe),
            device_title=resolved.device.title,
        )

    @property
    def uses_tensorrt(self) -> bool:
        """True when the engine is made by TensorRT or TensorRT-RTX."""
        return self.backend in ("tensorrt", "tensorrt_rtx")

    @property
    def engine_title(self) -> str:
        """The compiler as people call it, e.g. ``TensorRT 10.3``."""
        title = BACKEND_TITLES.get(self.backend, self.backend)
        return f"{title} {self.tensorrt_version}" if self.tensorrt_version else title

    @property
    def version(self) -> tuple[int, ...]:
        """The version as numbers; empty when unknown."""
        return parse_version(self.tensorrt_version or "")


def _find_version(resolved: ResolvedProfile) -> str | None:
    """Return the TensorRT that will compile, as far as that is known here."""
    installed = find_installed(resolved.profile.backend).version
    if resolved.profile.backend != "tensorrt" or installed:
        return installed
    # the oldest TensorRT 10 a JetPack ships: what it takes, the newer ones take too
    return next((v for v in resolved.device.jetpack.values() if v.startswith("10.")), None)


def parse_version(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a dotted version; empty when there is none."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    return tuple(numbers)
