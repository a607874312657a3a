"""Reading ``report.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trtdeploy.core.errors import InputError
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import parse_document

REPORT_NAME: Final = "report.json"
LARGEST_FILE_BYTES: Final = 256 << 20


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
    return parse_document(BuildReport, read_bytes(path), str(path))


def read_bytes(path: Path) -> bytes:
    """Return the content of a report or manifest.

    Raises:
        InputError: It cannot be read, or is larger than any that trtdeploy writes.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > LARGEST_FILE_BYTES:
        raise InputError(f"{path} is larger than 256 MiB; no report of trtdeploy is")
    return raw
