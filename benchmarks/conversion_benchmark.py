"""The benchmark behind ``convert.py``: FP16 typing by trtdeploy and its peers."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import model_catalog
from benchmarks.conversion_report import ModelResult, ToolResult, Verdict, render_report
from benchmarks.environments import InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import BIG, Model, UnknownModelError, parse_shapes, provide
from benchmarks.options import make_parser
from benchmarks.processes import Command, measure_process
from benchmarks.progress import report_progress
from benchmarks.rounds import run_in_turn, warm_up
from benchmarks.tools import DEFAULT_PEERS, OURS, PEERS, Tool

_JUDGE = Path(__file__).with_name("judging.py")


@dataclass(frozen=True)
class Bench:
    """Everything that stays the same over the models.

    Attributes:
        tools: What is compared, trtdeploy first.
        pythons: Python of each tool's environment, by the tool's name.
        folder: For models and results; emptied in between.
        rounds: Measured runs of each tool.
    """

    tools: tuple[Tool, ...]
    pythons: dict[str, Path]
    folder: Path
    rounds: int

    @property
    def our_python(self) -> Path:
        """Python of trtdeploy's environment, which has ONNX Runtime too."""
        return self.pythons[OURS.name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0, or 1 when something could not be installed or found."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (InstallError, UnknownModelError) as error:
        print(f"convert.py: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks/convert.py", __doc__ or "")
    add = parser.add_argument
    dims = "dims of an input of a FILE, for comparing outputs"
    add("--shape", action="append", default=[], metavar="INPUT:1x3x64x64", help=dims)
    peers = "default: %(default)s; modelopt installs gigabytes"
    add("--peers", nargs="*", choices=PEERS, default=list(DEFAULT_PEERS), help=peers)
    add("--big", action="store_true", help="also type 4 GiB of external data, trtdeploy alone")
    options = parser.parse_args(arguments)
    try:
        options.shapes = parse_shapes(options.shape)
    except ValueError as error:
        parser.error(str(error))
    return options


def _run(options: argparse.Namespace) -> int:
    machine = describe_machine()
    tools = (OURS, *(PEERS[name] for name in options.peers))
    pythons = {
        tool.name: install(tool.environment, options.venv, report_progress) for tool in tools
    }
    if options.fetch:
        model_catalog.fetch_zoo(report_progress)
    names = list(options.models or model_catalog.list_present())
    with tempfile.TemporaryDirectory(prefix="trtdeploy-convert-") as temporary:
        bench = Bench(tools, pythons, Path(temporary), options.runs)
        results = [_measure_model(bench, name, options.shapes) for name in names]
        big = _measure_big(bench) if options.big else None
    report: dict[str, Any] = {
        "machine": machine,
        "command": " ".join(["python benchmarks/convert.py", *sys.argv[1:]]),
        "runs": options.runs,
        "versions": {
            tool.name: read_versions(pythons[tool.name], tool.environment.shown) for tool in tools
        },
        "models": [result.to_dict() for result in results],
        "big": big.to_dict() if big else None,
    }
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        print(render_report(report, results, big))
    return 0


def _measure_model(bench: Bench, name: str, shapes: dict[str, list[int]]) -> ModelResult:
    model = provide(name, bench.our_python, bench.folder)
    shapes = {**model.shapes, **shapes}
    report_progress(f"{model.label}:")
    targets = {tool.name: bench.folder / f"{tool.name}.onnx" for tool in bench.tools}
    commands = {
        tool.name: tool.command(bench.pythons[tool.name], model.path, targets[tool.name])
        for tool in bench.tools
    }
    first = warm_up(commands, report_progress)
    working = {name: commands[name] for name, run in first.items() if not run.failed}
    verdicts = {
        name: _judge(bench, model, targets[name], shapes)
        if name in working
        else Verdict(reason=first[name].reason)
        for name in commands
    }
    measured = run_in_turn(working, bench.rounds, report_progress)
    for target in targets.values():
        target.unlink(missing_ok=True)
    tools = [
        ToolResult(tool.name, tuple(measured.get(tool.name, ())), verdicts[tool.name])
        for tool in bench.tools
    ]
    return ModelResult(model.label, tuple(tools))


def _judge(bench: Bench, model: Model, candidate: Path, shapes: dict[str, list[int]]) -> Verdict:
    command: Command = [bench.our_python, "-I", _JUDGE, model.path, candidate, json.dumps(shapes)]
    done = measure_process(command)
    if done.failed:
        return Verdict(reason=f"not judged: {done.reason}")
    return Verdict(**json.loads(done.log_tail.splitlines()[-1]))


def _measure_big(bench: Bench) -> ModelResult:
    """Type the big model with trtdeploy alone: the peers would fill this machine's memory."""
    free = shutil.disk_usage(bench.folder).free
    if free < 3 << 30:
        raise UnknownModelError(f"{bench.folder} has {free / 1e9:.1f} GB free; --big writes 2.2 GB")
    model = provide(BIG, bench.our_python, bench.folder)
    report_progress(f"{model.label}, trtdeploy alone:")
    target = bench.folder / "typed.onnx"
    command = OURS.command(bench.our_python, model.path, target)
    runs = run_in_turn({OURS.name: command}, 1, report_progress)[OURS.name]
    check = f"import onnx; onnx.checker.check_model({str(target)!r}, full_check=True)"
    checked = measure_process([bench.our_python, "-I", "-c", check])
    typed_bytes = sum(path.stat().st_size for path in bench.folder.glob("typed.onnx*"))
    reason = checked.reason if checked.failed else f"{typed_bytes / 1e6:.1f} MB, full ONNX check"
    verdict = Verdict(loads=not checked.failed, right=not checked.failed, reason=reason)
    return ModelResult(model.label, (ToolResult(OURS.name, tuple(runs), verdict),))
