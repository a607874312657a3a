"""The first bytes of engine files: whose plan it is, and of which version.

Layout: TensorRT samples/common/sampleEngines.cpp (printPlanVersion) for TensorRT; measured on
TensorRT-RTX 1.7.1 for its plans; Ultralytics puts a length and JSON metadata in front.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HEADER_BYTES = 40
_LENGTH_BYTES = 4
_TAGS = {b"ftrt": "TensorRT", b"vtrt": "TensorRT-RTX"}
_VERSION_OFFSET = 24
_CAPABILITY_OFFSET = 32
_CAPABILITY_BITS = {1: "7.5", 2: "8.0", 4: "8.6", 8: "8.9", 16: "12.0", 32: "12.1"}
_MAX_METADATA_BYTES = 1 << 20


@dataclass(frozen=True)
class PlanHeader:
    """What an engine file says about itself.

    Attributes:
        product: ``TensorRT`` or ``TensorRT-RTX``.
        version: Four numbers; the last is truncated to 8 bits in the file.
        compute_capabilities: Of a TensorRT-RTX plan; undocumented, for display only.
        offset: Where the plan starts; above 0 behind Ultralytics' metadata.
        metadata: Ultralytics' metadata.
    """

    product: str
    version: str
    compute_capabilities: tuple[str, ...] = ()
    offset: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)


def read_plan_header(path: Path) -> PlanHeader | None:
    """Return the header of an engine file, None when it is not one.

    Args:
        path: Any file.
    """
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES)
        header = parse_plan_header(start)
        if header is not None or len(start) < _LENGTH_BYTES:
            return header
        (length,) = struct.unpack_from("<i", start)
        if not 0 < length <= _MAX_METADATA_BYTES:
            return None
        file.seek(_LENGTH_BYTES)
        metadata = _parse_metadata(file.read(length))
        inner = parse_plan_header(file.read(HEADER_BYTES))
    if metadata is None or inner is None:
        return None
    offset = _LENGTH_BYTES + length
    return PlanHeader(inner.product, inner.version, inner.compute_capabilities, offset, metadata)


def parse_plan_header(start: bytes) -> PlanHeader | None:
    """Return the header in the first bytes of a plan, None when they are something else."""
    product = _TAGS.get(start[:4])
    if product is None or len(start) < _VERSION_OFFSET + 4:
        return None
    version = ".".join(str(part) for part in start[_VERSION_OFFSET : _VERSION_OFFSET + 4])
    capabilities: tuple[str, ...] = ()
    if product == "TensorRT-RTX" and len(start) >= HEADER_BYTES:
        (bits,) = struct.unpack_from("<Q", start, _CAPABILITY_OFFSET)
        capabilities = tuple(name for bit, name in _CAPABILITY_BITS.items() if bits & bit)
    return PlanHeader(product, version, capabilities)


def _parse_metadata(text: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None
    return data if isinstance(data, dict) else None
