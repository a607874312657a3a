"""``calibration.json``: calibration statistics on the disk, for people and for the next build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trtdeploy.calibration.histogram import FINITE_BINS, MagnitudeHistogram
from trtdeploy.calibration.histogram_text import (
    LONGEST_TEXT,
    format_counts,
    parse_histogram,
)
from trtdeploy.calibration.methods import MethodChoice, find_amax
from trtdeploy.calibration.statistics import CalibrationData, CalibrationStatistics
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.core.errors import InputError
from trtdeploy.core.files import save_text
from trtdeploy.core.number_formats import INT8, QuantizedType

SCHEMA_VERSION: Final = 1
CALIBRATION_NAME: Final = "calibration.json"
LARGEST_FILE_BYTES: Final = 64 << 20
MOST_TENSORS: Final = 4096
"""A histogram takes up to 255 KiB in memory, so a hostile file at most 1 GiB."""
_ABOUT = (
    "Magnitudes of a model's tensors over sample inputs. Thresholds are shown for people; "
    "trtdeploy computes them again from the histograms, by whichever method is asked for."
)
_LARGEST_COUNT = 2**53
_LONGEST_NAME = 16384
_LONGEST_PLACE = 200
_LONGEST_VALUE = 60

_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Count = Annotated[int, Field(ge=0, le=_LARGEST_COUNT)]
_Text = Annotated[str, Field(max_length=_LONGEST_NAME)]
_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class _Data(_Part):
    # the domain's own class knows no bounds, and no pydantic
    description: _Text
    sha256: _Sha256
    samples: _Count
    skipped: tuple[_Text, ...]
    synthetic: bool


class _Choice(_Part):
    kind: _Text
    default: _Text
    by_tensor: tuple[tuple[_Text, _Text], ...]
    percentile: _Number


class _Tensor(_Part):
    amax: _Number
    minimum: _Number | None
    maximum: _Number | None
    one_sided: bool
    always_zero: bool
    count: _Count
    method: _Text
    threshold: _Number
    thresholds: dict[_Text, _Number]
    first_bin: Annotated[int, Field(ge=0, lt=FINITE_BINS)]
    counts: Annotated[str, Field(max_length=LONGEST_TEXT)]


class _Document(_Part):
    schema_version: int
    about: _Text
    model_sha256: _Sha256
    data: tuple[_Data, ...]
    methods: _Choice
    notes: tuple[_Text, ...]
    tensors: Annotated[dict[_Text, _Tensor], Field(max_length=MOST_TENSORS)]


class _Version(BaseModel):
    """Asked first: a file of another version is not a damaged one."""

    schema_version: int


def save_statistics(
    statistics: CalibrationStatistics,
    path: Path,
    methods: MethodChoice,
    kind: QuantizedType = INT8,
) -> None:
    """Write ``calibration.json``, whole or not at all.

    Args:
        statistics: What was found.
        path: The file; an existing one is replaced.
        methods: What the build chose; shown beside what each method would have given.
        kind: The 8-bit type that amax is for.

    Raises:
        UsageError: A pattern of ``methods`` matches no tensor.
        InputError: It cannot be written.
    """
    try:
        save_text(path, format_statistics(statistics, methods, kind))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error


def load_statistics(path: Path) -> CalibrationStatistics:
    """Read and check a ``calibration.json``.

    Raises:
        InputError: There is none, it is damaged, or it has a schema this version cannot read.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE_BYTES:
        raise InputError(f"{path} is larger than {LARGEST_FILE_BYTES >> 20} MiB; no calibration is")
    return parse_statistics(raw, str(path))


def format_statistics(
    statistics: CalibrationStatistics, methods: MethodChoice, kind: QuantizedType = INT8
) -> str:
    """Return the text of ``calibration.json``."""
    methods.check_patterns(statistics.histograms)
    document = {
        "schema_version": SCHEMA_VERSION,
        "about": _ABOUT,
        "model_sha256": statistics.model_sha256,
        "data": [
            {
                "description": _to_valid(data.description),
                "sha256": data.sha256,
                "samples": data.samples,
                "skipped": [_to_valid(text) for text in data.skipped],
                "synthetic": data.is_synthetic,
            }
            for data in statistics.data
        ],
        "methods": {
            "kind": kind.name,
            "default": methods.default,
            "by_tensor": [list(pair) for pair in methods.by_tensor],
            "percentile": methods.percentile,
        },
        "notes": [_to_valid(text) for text in statistics.notes],
        "tensors": {
            name: _describe_tensor(found, methods.find_method(name), methods, kind)
            for name, found in statistics.histograms.items()
        },
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _to_valid(text: str) -> str:
    """Return text that UTF-8 can write: names of files may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _describe_tensor(
    found: MagnitudeHistogram, method: str, methods: MethodChoice, kind: QuantizedType
) -> dict[str, Any]:
    amax: dict[str, float] = {
        each: find_amax(found, each, kind, percentile=methods.percentile)
        for each in CALIBRATION_METHODS
    }
    first_bin, counts = format_counts(found)
    is_empty = found.minimum > found.maximum
    return {
        "amax": found.largest,
        "minimum": None if is_empty else found.minimum,
        "maximum": None if is_empty else found.maximum,
        "one_sided": found.is_one_sided,
        "always_zero": found.largest == 0.0,
        "count": found.count,
        "method": method,
        "threshold": amax[method],
        "thresholds": amax,
        "first_bin": first_bin,
        "counts": counts,
    }


def parse_statistics(raw: bytes, label: str) -> CalibrationStatistics:
    """Return the statistics that a JSON text holds.

    Args:
        raw: The JSON text.
        label: How messages call it, e.g. its path.

    Raises:
        InputError: It is damaged, or has a schema this version cannot read.
    """
    hint = "Calibrate again from the samples."
    try:
        version = _Version.model_validate_json(raw).schema_version
        if version != SCHEMA_VERSION:
            raise InputError(
                f"{label} has schema version {version}; this trtdeploy reads {SCHEMA_VERSION}",
                hint=hint,
            )
        document = _Document.model_validate_json(raw)
    except ValidationError as error:
        raise InputError(f"{label} is no calibration: {_describe(error)}", hint=hint) from error
    histograms = {}
    for name, tensor in document.tensors.items():
        place = f"{label}: tensors.{ascii(name)[1:-1][:_LONGEST_PLACE]}"
        histograms[name] = _read_histogram(tensor, place, hint)
    data = tuple(
        CalibrationData(d.description, d.sha256, d.samples, d.skipped, d.synthetic)
        for d in document.data
    )
    return CalibrationStatistics(document.model_sha256, histograms, data, document.notes)


def _read_histogram(tensor: _Tensor, place: str, hint: str) -> MagnitudeHistogram:
    try:
        found = parse_histogram(tensor.first_bin, tensor.counts, (tensor.minimum, tensor.maximum))
    except ValueError as error:
        raise InputError(f"{place}: {error}", hint=hint) from error
    if found.count != tensor.count:
        raise InputError(
            f"{place}: the histogram holds {found.count} values, expected {tensor.count}", hint=hint
        )
    return found


def _describe(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False)
    detail = details[0]
    place = ascii(".".join(map(str, detail["loc"])))[1:-1][:_LONGEST_PLACE]
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    if detail["type"] == "json_invalid" or not place:
        return detail["msg"] + more
    given = detail["input"]
    shown = type(given).__name__ if isinstance(given, dict | list) else ascii(given)
    return f"{place}: {detail['msg']}, given {shown[:_LONGEST_VALUE]}{more}"
