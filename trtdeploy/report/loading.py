"""Reading ``report.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from trtdeploy.core.errors import InputError
from trtdeploy.report.document import SCHEMA_VERSION, BuildReport
from trtdeploy.report.fields import Integer, ReportModel, replace_controls
from trtdeploy.report.parity_section import ParitySection

REPORT_NAME: Final = "report.json"
LARGEST_FILE_BYTES: Final = 256 << 20
_LONGEST_PLACE = 200
_LONGEST_VALUE = 60


class _Version(ReportModel):
    """Asked first: a report of another version is not a damaged one."""

    schema_version: Integer


def find_report_file(folder_or_file: Path) -> Path:
    """Return the ``report.json`` of a folder, or the file itself.

    Raises:
        InputError: There is no such file.
    """
    path = folder_or_file / REPORT_NAME if folder_or_file.is_dir() else folder_or_file
    if path.is_file():
        return path
    missing = f"it has no {REPORT_NAME}" if folder_or_file.is_dir() else "there is no such file"
    raise InputError(
        f"{folder_or_file} is not an output folder of trtdeploy: {missing}",
        hint="Give a folder that 'trtdeploy build' wrote.",
    )


def load_report(folder_or_file: Path) -> BuildReport:
    """Read and check the report of an output folder.

    Raises:
        InputError: There is none, it is damaged, or it has a schema this version cannot read.
    """
    path = find_report_file(folder_or_file)
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE_BYTES:
        raise InputError(f"{path} is larger than 256 MiB; no report of trtdeploy is")
    return parse_report(raw, str(path))


def parse_report(raw: bytes, label: str) -> BuildReport:
    """Return the report that a JSON text holds.

    Args:
        raw: The JSON text.
        label: How messages call it, e.g. its path.

    Raises:
        InputError: It is damaged, or has a schema this version cannot read.
    """
    try:
        found = _Version.model_validate_json(raw).schema_version
        if found == SCHEMA_VERSION:
            return BuildReport.model_validate_json(raw)
    except ValidationError as error:
        raise InputError(
            f"{label} is damaged: {describe_damage(error)}", hint="Build the folder again."
        ) from error
    raise InputError(
        f"{label} has schema version {found}; this trtdeploy reads {SCHEMA_VERSION}",
        hint="Use the trtdeploy that wrote it, or build the folder again.",
    )


def check_report(report: dict[str, Any]) -> BuildReport:
    """Return a report that is about to be written as typed values.

    Raises:
        InputError: It is not what the schema says; a bug in whatever made it.
    """
    return parse_report(json.dumps(report).encode(), REPORT_NAME)


def check_parity_section(parity: dict[str, Any]) -> ParitySection:
    """Return the result of a parity check as typed values; figures that do not exist are None."""
    return ParitySection.model_validate_json(json.dumps(parity))


def describe_damage(error: ValidationError) -> str:
    """Return the first problem as ``place: what is wrong, given what``, and how many more."""
    details = error.errors(include_url=False, include_context=False)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return _describe_one(details[0]) + more


def _describe_one(detail: ErrorDetails) -> str:
    keys = [*detail["loc"]]
    if keys[:2] in (["parity", "checked"], ["parity", "skipped"]):
        del keys[1]  # the union's own name for its member, no key of the file
    place = replace_controls(".".join(map(str, keys)))[:_LONGEST_PLACE]
    if detail["type"] == "json_invalid" or not place:
        return detail["msg"]
    if detail["type"] == "value_error":
        return f"{place}: {detail['msg'].removeprefix('Value error, ')}"
    given = detail["input"]
    shown = type(given).__name__ if isinstance(given, dict | list) else ascii(given)
    return f"{place}: {detail['msg']}, given {shown[:_LONGEST_VALUE]}"
