"""The benchmark behind ``quantization_accuracy.py``: INT8 by trtdeploy and its peers, judged alike.

Every tool gets the same FP32 file, the same calibration samples and the same calibration method;
what it writes is emulated by ``trtdeploy.precision.emulation`` and compared with the FP32 outputs
on other samples.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
from onnx import version_converter

from benchmarks.accuracy_measurement import AccuracyJudge
from benchmarks.accuracy_models import AccuracyModel, Arrays, list_models
from benchmarks.environments import DEFAULT_FOLDER, ROOT, InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.peer_accuracy_report import OURS, Row, is_ahead, render_report
from benchmarks.processes import Command, measure_process
from benchmarks.progress import report_progress
from benchmarks.tools import PEERS, PROGRAMS
from trtdeploy.core.errors import TrtdeployError
from trtdeploy.graph.loading import load_model
from trtdeploy.precision.audit.auditing import audit_quantization

SHARED_METHODS = ("entropy", "minmax")
"""What all three tools have."""
_OUR_METHODS = ("entropy", "minmax", "mse", "percentile")
SAME_LAYERS = f"{OURS}, modelopt's layers"
"""trtdeploy with the layers pinned to FP32 that only trtdeploy quantizes."""
_VARIANTS = {
    OURS: (OURS, ()),
    "modelopt": ("modelopt", ()),
    "ort": ("ort", ("all",)),
    "ort, layers only": ("ort", ("layers",)),
    SAME_LAYERS: (OURS, ()),
}
"""By name in the table: the tool, and what its program is told."""
_OPSET = 17
"""Below 13 there are no scales per channel, and ONNX Runtime writes files that do not load."""
_DEPLOY_PROFILE = "extends: rtx4090-int8\nrecipe: int8-fp32\n"
_TIMEOUT_S = 3600


@dataclass(frozen=True)
class Bench:
    """Everything that stays the same over the candidates of one model.

    Attributes:
        model: With its data.
        judge: Knows the FP32 outputs.
        pythons: Python of each peer's environment.
        folder: For sources, samples and results.
        shapes: Of one sample.
    """

    model: AccuracyModel
    judge: AccuracyJudge
    pythons: dict[str, Path]
    folder: Path
    shapes: dict[str, tuple[int, ...]]

    @property
    def source(self) -> Path:
        """The FP32 file that every tool gets."""
        return self.folder / "source.onnx"

    def find_target(self, variant: str, method: str) -> Path:
        """Return where the quantized file goes."""
        return self.folder / method / re.sub(r"\W+", "-", variant) / "model.onnx"

    def make_command(self, variant: str, method: str) -> Command:
        """Return the command that quantizes."""
        target, samples = self.find_target(variant, method), self.folder / "samples.npz"
        tool, arguments = _VARIANTS[variant]
        if tool == OURS:
            pins = self.list_more_layers(method) if variant == SAME_LAYERS else []
            sizes = [f"{name}:{'x'.join(map(str, dims))}" for name, dims in self.shapes.items()]
            return [
                sys.executable, "-m", "trtdeploy", "build", self.source, "--rebuild",
                "--profile", self.folder / "int8.yaml", "--output-dir", target.parent,
                "--calib", samples, "--calib-method", method, "--prepare-only", "--no-parity",
                *(text for size in sizes for text in ("--shape", size)),
                *(text for pin in pins for text in ("--pin", pin)),
            ]  # fmt: skip
        program = {"modelopt": "write_int8_modelopt.py", "ort": "write_int8_onnxruntime.py"}[tool]
        python = self.pythons[tool]
        return [python, "-I", PROGRAMS / program, self.source, target, samples, method, *arguments]

    def list_more_layers(self, method: str) -> list[str]:
        """Return the layers that trtdeploy quantizes and Model-Optimizer does not.

        None when Model-Optimizer has no file, or nothing would be left.
        """
        theirs = self._find_quantized(self.find_target("modelopt", method))
        ours = self._find_quantized(self.find_target(OURS, method))
        return sorted(ours - theirs) if ours & theirs else []

    def _find_quantized(self, path: Path) -> set[str]:
        if not path.exists():
            return set()
        audit = audit_quantization(load_model(path), self.shapes)
        return {layer.node for layer in audit.layers if layer.is_quantized}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 1 when a peer is ahead of trtdeploy or something is missing."""
    options = _make_parser().parse_args(arguments)
    machine = describe_machine()
    try:
        pythons = {
            name: install(PEERS[name].environment, options.venv, report_progress)
            for name in options.peers
        }
    except InstallError as error:
        print(f"quantization_accuracy.py: {error}", file=sys.stderr)
        return 1
    models = [m for m in list_models(options.zoo, None, {}) if m.name in (options.only or [m.name])]
    if not models:
        print(f"no model in {options.zoo}: try trtdeploy models fetch all", file=sys.stderr)
        return 1
    rows = [row for model in models for row in measure_model(model, pythons, options.keep)]
    versions = {OURS: read_versions(Path(sys.executable), ["trtdeploy", "onnx", "onnxruntime"])}
    for name, python in pythons.items():
        versions[name] = read_versions(python, PEERS[name].environment.shown)
    command = " ".join(["python benchmarks/quantization_accuracy.py", *sys.argv[1:]])
    report = {"command": command, "machine": machine, "versions": versions}
    if options.json:
        print(json.dumps({**report, "rows": [row.to_dict() for row in rows]}, indent=2))
    else:
        print(render_report(report, rows, models))
    return 0 if is_ahead(rows) else 1


def measure_model(
    model: AccuracyModel, pythons: dict[str, Path], keep: Path | None = None
) -> Iterator[Row]:
    """Yield one row per method and tool.

    Args:
        model: With its data.
        pythons: Python of each peer that takes part.
        keep: Folder for the quantized files; None forgets them.
    """
    with tempfile.TemporaryDirectory(prefix="trtdeploy-accuracy-") as temporary:
        folder = Path(temporary)
        bench = _prepare(model, pythons, folder)
        variants = [name for name, (tool, _) in _VARIANTS.items() if tool in (OURS, *pythons)]
        for method in _OUR_METHODS:
            for variant in variants if method in SHARED_METHODS else [OURS]:
                if variant == SAME_LAYERS and not bench.list_more_layers(method):
                    continue
                row = _measure(bench, variant, method)
                report_progress(f"  {model.name}  {method:10}  {variant:28}  {row.summary}")
                yield row
        if keep is not None:
            shutil.copytree(folder, keep / model.name, dirs_exist_ok=True)


def _prepare(model: AccuracyModel, pythons: dict[str, Path], folder: Path) -> Bench:
    report_progress(f"{model.name}: {model.calibrating} samples, {model.evaluating} others")
    samples: Arrays = model.make_samples(model.calibrating, "calibrate")
    np.savez(folder / "samples.npz", allow_pickle=False, **samples)
    (folder / "int8.yaml").write_text(_DEPLOY_PROFILE, encoding="utf-8")
    onnx.save(modernize(onnx.load(model.path)), folder / "source.onnx")
    shapes = {name: (1, *values.shape[1:]) for name, values in samples.items()}
    return Bench(model, AccuracyJudge(model), pythons, folder, shapes)


def modernize(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that every tool can work with: opset 17 at least, and one name per free size.

    PaddlePaddle calls all free sizes ``?``, which TensorRT takes for one size.
    """
    opset = max(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    raised = version_converter.convert_version(model, _OPSET) if opset < _OPSET else model
    del raised.graph.value_info[:]
    for value in (*raised.graph.input, *raised.graph.output):
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_value <= 0 and not dim.dim_param.isidentifier():
                dim.dim_param = f"{value.name}_{axis}"
    return raised


def _measure(bench: Bench, variant: str, method: str) -> Row:
    path = bench.find_target(variant, method)
    path.parent.mkdir(parents=True)
    done = measure_process(bench.make_command(variant, method), timeout_s=_TIMEOUT_S)
    row = Row(bench.model.name, method, variant)
    if done.failed:
        return row.fail(done.reason)
    try:
        figures = bench.judge.measure(path)
        audit = audit_quantization(load_model(path), bench.shapes)
    except TrtdeployError as error:
        return row.fail(str(error))
    return Row(
        bench.model.name,
        method,
        variant,
        sqnr_db=min(figures.sqnr_db.values()),
        task=dict(figures.task),
        quantized_layers=sum(layer.is_quantized for layer in audit.layers),
        layers=len(audit.layers),
        flops_share=audit.flops_share,
        engine=_compile(bench, path),
    )


def _compile(bench: Bench, path: Path) -> str:
    """Return what TensorRT-RTX says; empty where it is not installed."""
    if find_spec("tensorrt_rtx") is None:
        return ""
    shapes = [f"{name}:{'x'.join(map(str, dims))}" for name, dims in bench.shapes.items()]
    done = measure_process([sys.executable, "-I", PROGRAMS / "judge_qdq.py", path, *shapes])
    if done.failed:
        return "crashed"
    answer = json.loads(done.log_tail.splitlines()[-1])
    return str(answer["verdict"])


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="benchmarks/quantization_accuracy.py", description=__doc__
    )
    add = parser.add_argument
    add("--zoo", type=Path, default=ROOT / "models" / "downloads", help="default: %(default)s")
    add("--only", action="append", metavar="MODEL", help="default: all that are there")
    peers = ("modelopt", "ort")
    add("--peers", nargs="*", choices=peers, default=peers, help="default: %(default)s")
    where = "where environments are made and found again; default: %(default)s"
    add("--venv", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER", help=where)
    add("--keep", type=Path, metavar="FOLDER", help="keep the quantized files there")
    add("--json", action="store_true", help="print JSON instead of Markdown")
    return parser
