"""The benchmark behind ``parity.py``: acceptance 5 of the issue on the parity check."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.emulation_speed import WorkerError, measure_speed
from benchmarks.environments import TRTDEPLOY, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import UnknownModelError, provide
from benchmarks.parity_memory import measure_memory
from benchmarks.parity_report import is_within_limits, render_report
from benchmarks.progress import report_progress


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a limit is not kept or something could not be measured."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (UnknownModelError, WorkerError) as error:
        print(f"parity.py: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="parity.py", description=__doc__)
    add = parser.add_argument
    add("--model", default="yolov8n-like", metavar="NAME|FILE", help="default: %(default)s")
    add("--runs", type=int, default=30, metavar="N", help="of each session; default: %(default)s")
    checks = "of the whole check with each number of samples; default: %(default)s"
    add("--checks", type=int, default=3, metavar="N", help=checks)
    add("--json", action="store_true", help="print JSON instead of Markdown")
    options = parser.parse_args(arguments)
    if min(options.runs, options.checks) < 1:
        parser.error("--runs and --checks are numbers of at least 1")
    return options


def _run(options: argparse.Namespace) -> int:
    machine = describe_machine()
    python = Path(sys.executable)
    with tempfile.TemporaryDirectory(prefix="trtdeploy-parity-") as temporary:
        folder = Path(temporary)
        model = provide(options.model, python, folder)
        speed = measure_speed(model.path, model.label, folder, options.runs, report_progress)
        memory = measure_memory(folder, options.checks, report_progress)
    report: dict[str, Any] = {
        "machine": machine,
        "command": " ".join(["python benchmarks/parity.py", *sys.argv[1:]]),
        "runs": options.runs,
        "checks": options.checks,
        "versions": read_versions(python, TRTDEPLOY.shown),
        "speed": speed.to_dict(),
        "memory": memory.to_dict(),
    }
    print(json.dumps(report, indent=2) if options.json else render_report(report, speed, memory))
    return 0 if is_within_limits(speed, memory) else 1
