"""The overhead of a session: acceptance 7 of the issue on sessions."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.environments import ROOT
from benchmarks.session import LIMIT_US, Overhead, is_within_limit, measure_overhead, render_report


def test_a_session_costs_at_most_20_microseconds() -> None:
    result = measure_overhead(2, rounds=15, calls=100)
    assert result.overhead_us <= LIMIT_US, result
    assert 0 < result.bare_us < result.session_us + LIMIT_US


def test_the_report_says_when_the_limit_is_broken() -> None:
    good, bad = (Overhead("m", 5, 5 + us, us, us, us) for us in (2.0, 21.0))
    assert is_within_limit([good])
    assert "within the limit of 20 us" in render_report([good])
    assert not is_within_limit([good, bad])
    assert "ABOVE" in render_report([good, bad])


def test_the_script_runs_by_path() -> None:
    command = [sys.executable, ROOT / "benchmarks" / "session.py", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert [entry["model"][:8] for entry in json.loads(done.stdout)] == [
        "1 inputs", "4 inputs", "16 input",
    ]  # fmt: skip
