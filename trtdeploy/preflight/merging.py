"""Putting the findings of all checks into one list without repetition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from trtdeploy.preflight.checks.engine_types import UNSUPPORTED_TYPE
from trtdeploy.preflight.checks.fixed_reshapes import FIXED_INSIDE
from trtdeploy.preflight.checks.parser_errors import PARSER_ERROR
from trtdeploy.preflight.checks.profile_shapes import SHAPES_CANNOT_RUN
from trtdeploy.preflight.checks.strings import STRING_TENSOR
from trtdeploy.preflight.finding import Affects, Finding, Severity
from trtdeploy.preflight.target import CheckTarget

_TYPE_CODES = frozenset({STRING_TENSOR.code, UNSUPPORTED_TYPE.code})
"""What a parser reports without naming a node: it stops while importing constants and inputs."""


def merge_findings(findings: Iterable[Finding], target: CheckTarget) -> tuple[Finding, ...]:
    """Return the findings without repetition, most severe first.

    A parser error about a node that a static check has explained adds the parser's words to that
    explanation. For ONNX Runtime as the engine, whatever affects the baseline affects the engine.
    """
    found = list(dict.fromkeys(findings))
    merged = [finding for finding in found if finding.code != PARSER_ERROR.code]
    for finding in found:
        if finding.code == PARSER_ERROR.code and not _add_words(merged, finding):
            merged.append(finding)
    merged = _drop_consequences(merged)
    if not target.uses_tensorrt:
        merged = [replace(finding, affects=Affects.BOTH) for finding in merged]
    order = list(Severity)
    return tuple(sorted(merged, key=lambda finding: order.index(finding.severity)))


def _add_words(merged: list[Finding], error: Finding) -> bool:
    """Append the error's words to the static finding that explains it; False if none does."""
    for position, finding in enumerate(merged):
        if finding.blocks_engine and _explains(finding, error):
            if error.message not in finding.message:
                text = f"{finding.message} [{error.message}]"
                merged[position] = replace(finding, message=text)
            return True
    return False


def _explains(finding: Finding, error: Finding) -> bool:
    if error.node:
        return finding.node == error.node
    if error.op_type:
        return finding.op_type == error.op_type and finding.node.startswith("unnamed #")
    return finding.code in _TYPE_CODES


def _drop_consequences(findings: list[Finding]) -> list[Finding]:
    """Leave out profile sizes that fail at a node whose fixed size has been reported."""
    fixed = {finding.node for finding in findings if finding.code == FIXED_INSIDE.code}
    kept = []
    seen: set[tuple[str, str]] = set()
    for finding in findings:
        if finding.code == SHAPES_CANNOT_RUN.code and finding.node in fixed:
            continue
        if finding.code == FIXED_INSIDE.code:
            if (finding.code, finding.node) in seen:
                continue
            seen.add((finding.code, finding.node))
        kept.append(finding)
    return kept
