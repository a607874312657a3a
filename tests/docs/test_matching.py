from __future__ import annotations

import pytest

from tests.docs.matching import explain_mismatch

PRINTED = """\
  load         0.1 s  opset 20, 326 nodes
  compile      1.6 s  10.3 MiB in 1.4 s
folder   yolov8n.rtx4090-fp16
parity   pass
"""


@pytest.mark.parametrize(
    "shown",
    [
        ["...", "parity   pass"],
        ["  load  0.3 s  opset 20, 326 nodes", "...", "folder   yolov8n.rtx4090-fp16", "..."],
        ["  load  ...", "  compile  11.2 s  9.9 MiB in 11.0 s", "..."],
        ["...", "folder", "         yolov8n.rtx4090-fp16", "parity pass"],
    ],
)
def test_figures_of_the_day_and_wrapping_may_differ(shown: list[str]) -> None:
    assert explain_mismatch(shown, PRINTED) == ""


@pytest.mark.parametrize(
    "shown",
    [
        ["parity   pass"],
        ["...", "parity   fail"],
        ["  load  0.1 s  opset 20, 327 nodes", "..."],
        ["...", "parity   pass", "..", "more"],
        [],
    ],
)
def test_everything_else_may_not(shown: list[str]) -> None:
    assert explain_mismatch(shown, PRINTED) != ""
