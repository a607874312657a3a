"""Writing ``report.html`` and ``junit.xml``."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from trtdeploy.core.errors import InputError
from trtdeploy.core.files import save_text
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import clean_value
from trtdeploy.report.junit import render_junit
from trtdeploy.report.page.html import render_html

HTML_NAME: Final = "report.html"
JUNIT_NAME: Final = "junit.xml"


def write_reports(folder: Path, report: BuildReport) -> None:
    """Write ``report.html`` and ``junit.xml`` of a build into its folder.

    Args:
        folder: The output folder.
        report: What ``report.json`` holds.

    Raises:
        InputError: The folder cannot be written.
    """
    shown = clean_value(BuildReport, report)
    save_html(folder / HTML_NAME, shown)
    save_junit(folder / JUNIT_NAME, shown)


def save_html(path: Path, report: BuildReport) -> None:
    """Write the page whole or not at all.

    Raises:
        InputError: The place cannot be written.
    """
    _save(path, render_html(report))


def save_junit(path: Path, report: BuildReport) -> None:
    """Write the JUnit file whole or not at all.

    Raises:
        InputError: The place cannot be written.
    """
    _save(path, render_junit(report))


def _save(path: Path, text: str) -> None:
    try:
        save_text(path, text)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}", hint="Choose a writable place."
        ) from error
