"""The table for a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from tests.report import fabricated
from tests.report.fabricated import check_report
from tests.report.test_html import HOSTILE, poison
from trtdeploy.report.console import measure_width, render_console


def render(parity: Any = None, **sections: Any) -> str:
    return render_console(check_report(fabricated.make_report(parity, **sections)))


def test_verdict_label_and_table() -> None:
    lines = render(fabricated.make_mixed_parity()).splitlines()
    assert lines[0] == "FAIL (emulated on CPU)"
    table = [line for line in lines if line.endswith(("  pass", "  SUSPECT", "  FAIL"))]
    assert len(table) == 20
    assert len({line.rindex("  ") for line in table}) == 1
    assert any(line.startswith("SUSPECT proto_masks at max: 17 times") for line in lines)
    assert any(line.startswith("HAZARD fixed-batch") for line in lines)


@pytest.mark.parametrize(
    "parity",
    [{"skipped": "no"}, fabricated.make_parity(), fabricated.make_passing_parity()],
)
def test_whatever_was_run_is_said_first(parity: Any) -> None:
    first = render(parity).splitlines()[0]
    assert first in {
        "NOT PROVEN (parity not run)",
        "FAIL (emulated on CPU)",
        "PASS (measured on NVIDIA GeForce RTX 4090)",
    }


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_fits_80_columns_and_sends_no_control_characters(hostile: str) -> None:
    quantization = fabricated.make_quantization()
    plain = fabricated.make_report(fabricated.make_mixed_parity(), quantization=quantization)
    lines = render_console(check_report(poison(plain, hostile))).splitlines()
    assert all(line.isprintable() for line in lines)
    assert max(map(measure_width, lines)) <= 79


def test_a_long_table_keeps_its_failures() -> None:
    good = [fabricated.make_output(f"output{i}", 1e-3) for i in range(100)]
    bad = fabricated.make_mixed_parity().points[2]
    text = render(fabricated.make_parity(fabricated.make_point("min", *good), bad))
    assert "embeddings/pooled  " in text
    assert "... and 44 more comparisons in report.json" in text
