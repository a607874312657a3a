"""What in a file cannot be cleaned: one error that names every node and cause."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from trtdeploy.config.loading import load_deploy_profile
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import OnnxModel
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import Finding, Severity
from trtdeploy.preflight.report import CheckReport
from trtdeploy.preflight.target import CheckTarget
from trtdeploy.preflight.text import describe_place

REPAIRED: Final = frozenset({"fixed-inside", "shape-conflict"})
"""Looked for again when everything has been repaired that can be."""
TRAINING: Final = "training-mode"

_LEFT_TO_RECIPES: Final = frozenset(
    {
        "bad-scale", "int32-dequantize", "narrow-source", "nonzero-zero-point",
        "quantized-operator", "uint8-quantization",
    }
)  # fmt: skip
"""Precision is decided by a recipe, not by cleaning."""
_SHOWN: Final = 20


def check_file(model: OnnxModel, profile: str) -> CheckReport:
    """Return what the pre-flight finds.

    Args:
        model: As loaded, or cleaned.
        profile: Deploy profile the file is for; empty for any TensorRT.
    """
    target = CheckTarget("tensorrt")
    if profile:
        resolved = load_deploy_profile(profile)
        target = CheckTarget(resolved.profile.backend, device_title=resolved.device.title)
    return check_model(model, target=target)


def refuse_blockers(report: CheckReport, *, ignored: Collection[str] = ()) -> None:
    """Raise when a file has blockers that cleaning does not remove.

    Args:
        report: Of the file.
        ignored: Codes of findings that are repaired later.

    Raises:
        ModelFileError: It names every blocker: node, operator, cause, remedy.
    """
    left = [f for f in report.findings if _stops(f) and f.code not in ignored]
    if not left:
        return
    lines = [f"  {_describe(finding)}" for finding in left[:_SHOWN]]
    if len(left) > _SHOWN:
        lines.append(f"  and {len(left) - _SHOWN} more; see them all with 'trtdeploy check'")
    count = "1 blocker" if len(left) == 1 else f"{len(left)} blockers"
    remedies = list(dict.fromkeys(f.remedy for f in left if f.remedy))
    if any(finding.code == TRAINING for finding in left):
        remedies.append(
            "Or, when only the file is left: --config training=inference takes the running "
            "statistics that it carries."
        )
    raise ModelFileError(
        f"{report.model} cannot be cleaned, it has {count}:\n" + "\n".join(lines),
        hint=" ".join(remedies[:3]),
    )


def _stops(finding: Finding) -> bool:
    return finding.severity is Severity.BLOCKER and finding.code not in _LEFT_TO_RECIPES


def _describe(finding: Finding) -> str:
    place = f"{describe_place(finding)}: " if finding.node else ""
    return f"{place}{finding.message}"
