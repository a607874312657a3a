"""What a build returns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trtdeploy.building.manifest import Manifest
from trtdeploy.parity.result import SkippedParity, Verdict, accept_verdict

ENGINE: Final = "engine"
PREPARED: Final = "prepared"


@dataclass(frozen=True)
class BuildResult:
    """A finished output folder.

    Attributes:
        folder: Where everything lies.
        manifest: Everything the build knew and decided, as in ``manifest.json``.
        reused: Nothing was built: the same result was already there.
        reason: Why there is no engine, when there is none.
        next_step: What to do about that.
    """

    folder: Path
    manifest: Manifest
    reused: bool = False
    reason: str = ""
    next_step: str = ""

    @property
    def status(self) -> str:
        """``engine``, or ``prepared`` when the device, or another machine, must still compile."""
        return self.manifest.status

    @property
    def engine_path(self) -> Path | None:
        """The engine (for ONNX Runtime: the typed model); None in a prepared folder."""
        engine = self.manifest.engine
        return self.folder / engine.file if engine else None

    @property
    def parity_verdict(self) -> str:
        """``pass``, ``suspect``, ``fail``; else why there is none."""
        parity = self.manifest.parity
        return parity.skipped if isinstance(parity, SkippedParity) else parity.verdict.value

    @property
    def parity_failed(self) -> bool:
        """The check found a difference, or could not be run although it was asked for."""
        statuses = {step.name: step.status for step in self.manifest.steps}
        return statuses.get("parity") == "failed"

    def is_accepted(self, *, strict: bool = False) -> bool:
        """Tell whether parity lets the build through; one that was left out stops nothing.

        Args:
            strict: Refuse a suspicion too; see ``trtdeploy.parity.result.accept_verdict``.
        """
        is_suspect = self.parity_verdict == Verdict.SUSPECT.value
        accepted = not is_suspect or accept_verdict(Verdict.SUSPECT, strict=strict)
        return accepted and not self.parity_failed

    @property
    def model_path(self) -> Path:
        """The typed ONNX model."""
        return self.folder / self.manifest.typed_model.file

    @property
    def report_path(self) -> Path:
        """The machine-readable report."""
        return self.folder / "report.json"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for ``--output json``."""
        return {
            "folder": str(self.folder),
            "status": self.status,
            "reused": self.reused,
            "engine": str(self.engine_path) if self.engine_path else None,
            "model": str(self.model_path),
            "report": str(self.report_path),
            "page": str(self.folder / "report.html"),
            "parity": self.parity_verdict,
            "manifest": str(self.folder / "manifest.json"),
            "reason": self.reason,
            "next_step": self.next_step,
        }
