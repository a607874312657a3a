"""The benchmark behind ``build.py``: what trtdeploy adds to the compiler's own time."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import model_catalog
from benchmarks.build_report import BuildComparison, Step, render_report
from benchmarks.environments import TRTDEPLOY_RTX, InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import UnknownModelError, provide
from benchmarks.options import make_parser
from benchmarks.processes import Command
from benchmarks.progress import report_progress
from benchmarks.rounds import run_in_turn, warm_up
from benchmarks.tools import PROGRAMS

BUILD, BARE = "trtdeploy build", "bare script"
HELP, TYPER = "trtdeploy --help", 'python -c "import typer"'


@dataclass(frozen=True)
class Bench:
    """Everything that stays the same over the models.

    Attributes:
        python: Of an environment with trtdeploy and TensorRT-RTX.
        profile: Deploy profile, one of a TensorRT-RTX device.
        folder: For models and results.
        rounds: Measured runs of each program.
    """

    python: Path
    profile: str
    folder: Path
    rounds: int

    @property
    def trtdeploy(self) -> Path:
        """The installed command."""
        return self.python.with_name("trtdeploy")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 1 when something could not be installed or found."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (InstallError, UnknownModelError) as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks/build.py", __doc__ or "")
    profile = "of a device of TensorRT-RTX; default: %(default)s"
    parser.add_argument("--profile", default="rtx4090-fp16", metavar="NAME", help=profile)
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    machine = describe_machine()
    python = install(TRTDEPLOY_RTX, options.venv, report_progress)
    if options.fetch:
        model_catalog.fetch_zoo(report_progress)
    names = list(options.models or model_catalog.list_present())
    with tempfile.TemporaryDirectory(prefix="trtdeploy-build-") as temporary:
        bench = Bench(python, options.profile, Path(temporary), options.runs)
        start = _measure_start(bench)
        builds = [_measure_build(bench, name) for name in names]
    report: dict[str, Any] = {
        "machine": machine,
        "command": " ".join(["python benchmarks/build.py", *sys.argv[1:]]),
        "profile": options.profile,
        "runs": options.runs,
        "versions": read_versions(python, TRTDEPLOY_RTX.shown),
        "start": start.to_dict(),
        "builds": [build.to_dict() for build in builds],
    }
    print(json.dumps(report, indent=2) if options.json else render_report(report, start, builds))
    return 0


def _measure_start(bench: Bench) -> BuildComparison:
    report_progress("start-up:")
    commands: dict[str, Command] = {
        HELP: [bench.trtdeploy, "--help"],
        TYPER: [bench.python, "-c", "import typer"],
    }
    warm_up(commands, report_progress)
    # It is short, so that several times as many runs cost nothing and even out more.
    runs = run_in_turn(commands, 4 * bench.rounds, report_progress)
    return BuildComparison("start-up", {name: tuple(found) for name, found in runs.items()})


def _measure_build(bench: Bench, name: str) -> BuildComparison:
    model = provide(name, bench.python, bench.folder)
    report_progress(f"{model.label}:")
    output, engine = bench.folder / "output", bench.folder / "bare.engine"
    build: Command = [
        bench.trtdeploy, "build", model.path, "--profile", bench.profile, "--output-dir", output,
        "--rebuild",
        "--no-parity",
    ]  # fmt: skip
    first = warm_up({BUILD: build}, report_progress)[BUILD]
    if first.failed:
        return BuildComparison(model.label, {BUILD: (first,)})
    request = bench.folder / "request.json"
    request.write_text(json.dumps(_make_request(output)), encoding="utf-8")
    program = PROGRAMS / "compile_bare.py"
    bare: Command = [bench.python, "-I", program, output / "model.onnx", request, engine]
    warm_up({BARE: bare}, report_progress)
    steps: list[tuple[Step, ...]] = []
    runs = run_in_turn(
        {BUILD: build, BARE: bare},
        bench.rounds,
        report_progress,
        after_round=lambda: steps.append(_read_steps(output)),
    )
    sizes = {
        key: path.stat().st_size
        for key, path in ((BUILD, output / "model.engine"), (BARE, engine))
        if path.exists()
    }
    return BuildComparison(
        model.label, {key: tuple(found) for key, found in runs.items()}, tuple(steps), sizes
    )


def _make_request(output: Path) -> dict[str, Any]:
    """Return what the bare script has to know, from the manifest of the same build."""
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    resolved = manifest["profile"]
    own = resolved["device"]["compute_capability"]
    names = dict.fromkeys([own, *resolved["profile"]["build"]["compute_capabilities"]])
    return {
        "compute_capabilities": [f"SM{name.replace('.', '')}" for name in names],
        "optimization_profiles": manifest["optimization_profiles"],
    }


def _read_steps(output: Path) -> tuple[Step, ...]:
    """Return trtdeploy's own account of its time: its steps, the compiler's share set apart."""
    manifest = json.loads((output / "manifest.json").read_text(encoding="utf-8"))
    compiled = manifest["compile"] or {"parse_s": 0.0, "build_s": 0.0}
    steps = {step["name"]: float(step["seconds"]) for step in manifest["steps"]}
    compiler_s = compiled["parse_s"] + compiled["build_s"]
    steps["compile"] = max(0.0, steps.get("compile", 0.0) - compiler_s)
    steps["TensorRT-RTX"] = compiler_s
    return tuple(Step(name, seconds) for name, seconds in steps.items() if name != "parity")
