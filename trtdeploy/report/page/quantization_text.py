"""The quantization of a report as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.calibration.quantization_report import QuantizationReport
from trtdeploy.calibration.summary import CalibrationSummary
from trtdeploy.report.number_text import count_noun, format_share, shorten
from trtdeploy.report.page.quantization_view import ObstacleGroup, group_obstacles, is_narrow

_NAME_CHARACTERS = 60
_MOST_PATTERNS = 6


def list_quantization_facts(section: QuantizationReport) -> Iterator[tuple[str, str]]:
    """Yield name and value of what a person should know; names have at most 14 characters."""
    audit = section.audit
    yield "quantized", describe_layers(section)
    answer = "Probably faster than FP16. " if audit.is_probably_faster else ""
    yield "expected speed", answer + audit.verdict
    if section.calibration is not None:
        yield "calibrated", describe_calibration(section.calibration)
    elif section.is_prequantized:
        yield "calibrated", "by who made the model: it is pre-quantized"


def list_obstacle_texts(section: QuantizationReport) -> list[str]:
    """Return the kinds of obstacles with most nodes, one sentence and a remedy each."""
    groups = group_obstacles(section.audit.obstacles)
    return [_describe_group(group) for group in groups]


def describe_layers(section: QuantizationReport) -> str:
    """Return ``54 of 64 layers INT8 (93 % of FLOPs)``."""
    audit = section.audit
    total = sum(audit.layers_by_type.values())
    narrow = [item for item in audit.layers_by_type.items() if is_narrow(item[0])]
    if not narrow:
        return f"none of {count_noun(total, 'layer')}" if total else "there is no layer"
    (kind, count), *others = narrow
    parts = [f"{count} of {count_noun(total, 'layer')} {kind.upper()}"]
    parts += [f"{more} {other.upper()}" for other, more in others]
    share = (
        f" ({format_share(audit.flops_share)} of FLOPs)" if audit.flops_share is not None else ""
    )
    return ", ".join(parts) + share


def describe_calibration(calibration: CalibrationSummary) -> str:
    """Return data, method and what was left out in one line."""
    samples = count_noun(calibration.samples, "sample")
    if calibration.is_synthetic:
        source = f"with {samples} that were made up: do not ship"
    else:
        places = ", ".join(entry.description for entry in calibration.data[:_MOST_PATTERNS])
        source = f"on {shorten(places, 200) or samples}"
    parts = [f"{source}; {describe_method(calibration)}"]
    if calibration.skipped:
        first = shorten(calibration.skipped[0], 200)
        parts.append(f"{count_noun(len(calibration.skipped), 'sample')} skipped ({first})")
    return "; ".join(parts)


def describe_method(calibration: CalibrationSummary) -> str:
    """Return ``entropy, minmax for '*Add*'``."""
    methods = {calibration.method, *(method for _, method in calibration.by_tensor)}
    parts = [calibration.method]
    parts += [
        f"{method} for {shorten(pattern, _NAME_CHARACTERS)!r}"
        for pattern, method in calibration.by_tensor[:_MOST_PATTERNS]
    ]
    if len(calibration.by_tensor) > _MOST_PATTERNS:
        parts.append(f"and {len(calibration.by_tensor) - _MOST_PATTERNS} more patterns")
    if "percentile" in methods:
        parts.append(f"percentile {calibration.percentile:g}")
    return ", ".join(parts)


def _describe_group(group: ObstacleGroup) -> str:
    first = repr(shorten(group.nodes[0], _NAME_CHARACTERS))
    more = len(group.nodes) - 1
    place = f"{first} and {count_noun(more, 'more node')}" if more else first
    return f"OBSTACLE {group.title}: {place}. {group.remedy}"
