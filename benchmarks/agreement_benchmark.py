"""The benchmark behind ``audit_agreement.py``: who accepts which Q/DQ file.

Each peer quantizes each model in every setting that its program lists, with noise as data; each
file is judged by the check alone and by the compiler alone. Exits with 1 when they disagree.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.environments import TRTDEPLOY_RTX, InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import UnknownModelError, provide
from benchmarks.options import make_parser
from benchmarks.progress import report_progress
from benchmarks.tools import PEERS, PROGRAMS

WRITERS = {"ort": "write_qdq_onnxruntime.py", "modelopt": "write_qdq_modelopt.py"}
_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Judgement:
    """What both said of one file.

    Attributes:
        model: The model it was made from.
        peer: Who made it.
        setting: How.
        check: What the check answered.
        compiler: What the compiler answered; ``crashed`` when its process died.
    """

    model: str
    peer: str
    setting: str
    check: dict[str, Any] = field(default_factory=dict)
    compiler: dict[str, Any] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """True when both accept, or both refuse and the check names the compiler's node."""
        node = self.compiler.get("node", "")
        if self.check["verdict"] != self.compiler["verdict"]:
            return False
        return not node or node in self.check["nodes"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when all agree, 1 when they do not or something is missing."""
    options = _parse(arguments)
    try:
        return _run(options)
    except (InstallError, UnknownModelError) as error:
        print(f"audit_agreement.py: {error}", file=sys.stderr)
        return 1


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = make_parser("benchmarks/audit_agreement.py", __doc__ or "")
    sizes = "sizes to calibrate and build with, as often as there are inputs"
    parser.add_argument(
        "--shape", action="append", required=True, metavar="NAME:1x3x64x64", help=sizes
    )
    peers = "default: %(default)s; modelopt needs 6.5 GB"
    parser.add_argument("--peers", nargs="+", choices=WRITERS, default=["ort"], help=peers)
    options = parser.parse_args(arguments)
    if len(options.models or ()) != 1:
        parser.error("give one --model, whose inputs --shape describes")
    return options


def _run(options: argparse.Namespace) -> int:
    judge = install(TRTDEPLOY_RTX, options.venv, report_progress)
    (name,) = options.models
    judgements: list[Judgement] = []
    versions = {"trtdeploy": read_versions(judge, TRTDEPLOY_RTX.shown)}
    with tempfile.TemporaryDirectory(prefix="trtdeploy-agreement-") as temporary:
        folder = Path(temporary)
        model = provide(name, judge, folder)
        for peer in options.peers:
            environment = PEERS[peer].environment
            python = install(environment, options.venv, report_progress)
            versions[peer] = read_versions(python, environment.shown)
            report_progress(f"{peer} quantizes {model.name}")
            program = PROGRAMS / WRITERS[peer]
            _call([python, "-I", program, model.path, folder, *options.shape])
            made = sorted(folder.glob(f"{model.path.stem}.{peer}.*.onnx"))
            judgements += [_judge(judge, model.name, peer, path, options.shape) for path in made]
    report = {
        "machine": describe_machine(),
        "versions": versions,
        "judgements": [{**asdict(found), "agrees": found.agrees} for found in judgements],
    }
    print(json.dumps(report, indent=2) if options.json else render_judgements(judgements))
    return 0 if judgements and all(found.agrees for found in judgements) else 1


def _judge(python: Path, model: str, peer: str, path: Path, shapes: Sequence[str]) -> Judgement:
    done = _call([python, "-I", PROGRAMS / "judge_qdq.py", path, *shapes])
    lines = [json.loads(line) for line in done.splitlines() if line.startswith("{")]
    crashed = {"verdict": "crashed", "by": "", "node": ""}
    check, compiler = (*lines, crashed, crashed)[:2]
    found = Judgement(model, peer, path.suffixes[-2].lstrip("."), check, compiler)
    report_progress(f"{path.name}: {found.check['verdict']}, {found.compiler['verdict']}")
    return found


def _call(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    return done.stdout


def render_judgements(judgements: Iterable[Judgement]) -> str:
    """Return a Markdown table, one row per file."""
    rows = defaultdict(list)
    for found in judgements:
        rows[found.model].append(found)
    lines = [
        "| model | made by | setting | check | TensorRT-RTX | agree | reasons of the check |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, found_rows in rows.items():
        for found in found_rows:
            codes = ", ".join(f"{code} x{count}" for code, count in found.check["codes"].items())
            by = found.compiler.get("by", "")
            engine = found.compiler["verdict"] + (f" ({by})" if by else "")
            lines.append(
                f"| {model} | {found.peer} | {found.setting} | {found.check['verdict']} "
                f"| {engine} | {'yes' if found.agrees else '**no**'} | {codes or '-'} |"
            )
    return "\n".join(lines)
