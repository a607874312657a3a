"""The benchmark behind ``calibrate.py``: INT8 calibration by trtdeploy and its peers."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.calibration_report import (
    CalibrationResult,
    FlatnessResult,
    is_within_limits,
    render_report,
)
from benchmarks.environments import TRTDEPLOY, Environment, InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import Model, UnknownModelError, provide
from benchmarks.options import make_parser
from benchmarks.processes import Command, measure_process
from benchmarks.progress import report_progress
from benchmarks.rounds import run_in_turn, warm_up
from benchmarks.tools import PEERS, PROGRAMS

OURS = "trtdeploy"
ENVIRONMENTS: dict[str, Environment] = {
    OURS: TRTDEPLOY,
    "modelopt": PEERS["modelopt"].environment,
    "ort": PEERS["ort"].environment,
}
_SCRIPTS = {
    OURS: "quantize_trtdeploy.py",
    "modelopt": "quantize_modelopt.py",
    "ort": "quantize_onnxruntime.py",
}
_PIXELS = 640
_MODEL = "yolov8n-like"
_COUNT_PAIRS = """
import onnx, sys
nodes = onnx.load(sys.argv[1]).graph.node
print(sum(n.op_type == "QuantizeLinear" for n in nodes))
"""


@dataclass(frozen=True)
class Bench:
    """Everything that stays the same over the runs.

    Attributes:
        pythons: Python of each tool's environment.
        model: What is quantized.
        folder: For data and results.
        method: Calibration method.
    """

    pythons: dict[str, Path]
    model: Model
    folder: Path
    method: str

    def find_target(self, tool: str) -> Path:
        """Return where a tool writes its model."""
        return self.folder / f"{tool}.onnx"

    def make_command(self, tool: str, data: Path) -> Command:
        """Return the command that calibrates and writes a Q/DQ model."""
        return [
            self.pythons[tool], "-I", PROGRAMS / _SCRIPTS[tool],
            self.model.path, self.find_target(tool), data, self.method,
        ]  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a limit is not kept or something could not be measured."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (InstallError, UnknownModelError) as error:
        print(f"calibrate.py: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks/calibrate.py", __doc__ or "")
    parser.set_defaults(runs=3)
    add = parser.add_argument
    add("--images", type=int, default=32, metavar="N", help="default: %(default)s")
    more = "trtdeploy alone, for the memory; default: %(default)s"
    add("--more-images", type=int, default=320, metavar="N", help=more)
    add("--method", choices=("entropy", "minmax"), default="entropy", help="default: %(default)s")
    peers = [name for name in ENVIRONMENTS if name != OURS]
    needs = "default: %(default)s; modelopt installs gigabytes, ort entropy needs 8 GB of memory"
    add("--peers", nargs="*", choices=peers, default=peers, help=needs)
    options = parser.parse_args(arguments)
    if min(options.images, options.more_images) < 1:
        parser.error("--images and --more-images are numbers of at least 1")
    if options.fetch or len(options.models or ()) > 1:
        parser.error("one model with a 640x640 image input: no --fetch, and one --model at most")
    return options


def _run(options: argparse.Namespace) -> int:
    machine = describe_machine()
    tools = (OURS, *options.peers)
    pythons = {tool: install(ENVIRONMENTS[tool], options.venv, report_progress) for tool in tools}
    with tempfile.TemporaryDirectory(prefix="trtdeploy-calibrate-") as temporary:
        folder = Path(temporary)
        model = provide((options.models or [_MODEL])[0], pythons[OURS], folder)
        bench = Bench(pythons, model, folder, options.method)
        result = _compare(bench, options.images, options.runs)
        flatness = _measure_flatness(bench, (options.images, options.more_images), options.runs)
    report: dict[str, Any] = {
        "machine": machine,
        "command": " ".join(["python benchmarks/calibrate.py", *sys.argv[1:]]),
        "runs": options.runs,
        "versions": {
            tool: read_versions(pythons[tool], ENVIRONMENTS[tool].shown) for tool in tools
        },
        "comparison": result.to_dict(),
        "memory": flatness.to_dict(),
    }
    print(json.dumps(report, indent=2) if options.json else render_report(report, result, flatness))
    return 0 if is_within_limits(result, flatness) else 1


def _compare(bench: Bench, images: int, rounds: int) -> CalibrationResult:
    report_progress(f"{bench.model.label}, {images} images, {bench.method}:")
    data = _write_images(bench, images)
    commands = {tool: bench.make_command(tool, data) for tool in bench.pythons}
    first = warm_up(commands, report_progress)
    failures = {name: run.reason for name, run in first.items() if run.failed}
    working = {name: command for name, command in commands.items() if name not in failures}
    pairs = {name: _count_pairs(bench, bench.find_target(name)) for name in working}
    measured = run_in_turn(working, rounds, report_progress)
    runs = {name: tuple(measured.get(name, ())) for name in commands}
    return CalibrationResult(bench.model.label, images, bench.method, runs, pairs, failures)


def _measure_flatness(bench: Bench, counts: tuple[int, int], rounds: int) -> FlatnessResult:
    report_progress(f"trtdeploy with {counts[0]} and {counts[1]} images:")
    commands = {
        str(count): bench.make_command(OURS, _write_images(bench, count)) for count in counts
    }
    runs = run_in_turn(commands, rounds, report_progress)
    return FlatnessResult({int(name): tuple(found) for name, found in runs.items()})


def _write_images(bench: Bench, count: int) -> Path:
    path = bench.folder / f"{count}.npy"
    if not path.exists():
        program = PROGRAMS / "write_images.py"
        done = measure_process([bench.pythons[OURS], "-I", program, path, str(count), str(_PIXELS)])
        if done.failed:
            raise UnknownModelError(f"the images could not be made: {done.reason}")
    return path


def _count_pairs(bench: Bench, path: Path) -> int | None:
    """Return how many QuantizeLinear nodes there are; None when onnx cannot read the file."""
    done = measure_process([bench.pythons[OURS], "-I", "-c", _COUNT_PAIRS, path])
    return None if done.failed else int(done.log_tail.splitlines()[-1])
