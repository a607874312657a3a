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

    Raises:
        InputError: The folder cannot be written.
    """
    shown = clean_value(BuildReport, report)
    save_file(folder / HTML_NAME, render_html(shown))
    save_file(folder / JUNIT_NAME, render_junit(shown))


def save_file(path: Path, text: str) -> None:
    """Write a page or a JUnit file whole or not at all.

    Raises:
        InputError: The place cannot be written.
    """
    try:
        save_text(path, text)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {error.strerror}", hint="Choose a writable place."
        ) from error
