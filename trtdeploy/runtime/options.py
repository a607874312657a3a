"""How a model is loaded, beyond which one."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from trtdeploy.core.errors import UsageError


@dataclass(frozen=True)
class SessionOptions:
    """Settings of a session; one that a backend lacks is refused, never ignored.

    Attributes:
        gpu_index: Which GPU, in CUDA's order (engines).
        cuda_graph: Capture the work once and replay it: less overhead on the CPU for small models
            (engines).
        runtime_cache: File in which TensorRT-RTX keeps the kernels it compiles at load, so that the
            next load is fast; read and written by this process's rights, and as trusted as the
            engine itself.
        lean_runtime: The ``libnvinfer_lean`` that runs a version-compatible engine which carries
            none. Loading it runs its code.
        threads: Threads that share one operator; 0 takes every core (ONNX Runtime).
    """

    gpu_index: int = 0
    cuda_graph: bool = False
    runtime_cache: str | Path | None = None
    lean_runtime: str | Path | None = None
    threads: int = 0

    def require_only(self, names: set[str], runtime: str) -> None:
        """Refuse every setting that was changed and is not one of ``names``.

        Raises:
            UsageError: ``runtime`` has no such setting.
        """
        for field in fields(self):
            if getattr(self, field.name) != field.default and field.name not in names:
                raise UsageError(
                    f"{runtime} has no session option {field.name}",
                    hint=f"It has: {', '.join(sorted(names))}.",
                )
