#!/usr/bin/env python3
"""What a session costs on top of ONNX Runtime's own ``InferenceSession.run``.

Runs in an environment that has trtdeploy. Both sides run the same tiny models on the same feeds
with one thread; ours checks every feed and returns outputs by name.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])  # run by path: find the package itself

LIMIT_US = 20.0
"""Acceptance 7 of the issue on sessions."""

_CALLS, _ROUNDS = 200, 60
_HEADERS = ("model", "bare run, us", "session, us", "overhead, us", "lowest", "highest")


@dataclass(frozen=True)
class Overhead:
    """One model; medians over rounds, in microseconds.

    Attributes:
        model: What it is.
        bare_us: One ``InferenceSession.run``.
        session_us: One ``Session.run``.
        overhead_us: Median over the rounds of the difference inside a round.
        lowest_us: Fifth percentile of that difference.
        highest_us: Ninety-fifth percentile.
    """

    model: str
    bare_us: float
    session_us: float
    overhead_us: float
    lowest_us: float
    highest_us: float


def save_pairs(path: Path, count: int) -> None:
    """Write a model with ``count`` inputs and as many outputs, each the negative of one input."""
    from onnx import TensorProto, helper, save

    def describe(prefix: str) -> list[Any]:
        dims = ["batch", 3, 4]
        kind = TensorProto.FLOAT
        return [helper.make_tensor_value_info(f"{prefix}{i}", kind, dims) for i in range(count)]

    nodes = [helper.make_node("Neg", [f"x{i}"], [f"y{i}"]) for i in range(count)]
    graph = helper.make_graph(nodes, "pairs", describe("x"), describe("y"))
    opsets = [helper.make_opsetid("", 17)]
    save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)


def measure_overhead(count: int, rounds: int = _ROUNDS, calls: int = _CALLS) -> Overhead:
    """Measure one model with ``count`` inputs and outputs; the two sides take turns."""
    import numpy as np
    import onnxruntime

    from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        save_pairs(path, count)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        bare = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        session = OnnxRuntimeSession(path, threads=1)
    feeds = {f"x{i}": np.ones((2, 3, 4), np.float32) for i in range(count)}
    sides = (lambda: bare.run(None, feeds), lambda: session.run(feeds))
    for side in sides:  # warm up
        _time_us(side, calls)
    found = [tuple(_time_us(side, calls) for side in sides) for _ in range(rounds)]
    differences = sorted(ours - theirs for theirs, ours in found)
    edge = len(differences) // 20
    return Overhead(
        model=f"{count} inputs, {count} outputs",
        bare_us=statistics.median(theirs for theirs, _ in found),
        session_us=statistics.median(ours for _, ours in found),
        overhead_us=statistics.median(differences),
        lowest_us=differences[edge],
        highest_us=differences[-1 - edge],
    )


def _time_us(call: Callable[[], object], calls: int) -> float:
    """Return the median time of one call: what else the machine does hits few of them."""
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def render_report(results: list[Overhead]) -> str:
    """Return a Markdown table and the verdict."""
    from benchmarks.machine import describe_machine
    from benchmarks.tables import render_facts, render_table

    rows = []
    for result in results:
        figures = (result.bare_us, result.session_us, result.overhead_us, result.lowest_us)
        rows.append([result.model, *(f"{us:.2f}" for us in (*figures, result.highest_us))])
    verdict = "within" if is_within_limit(results) else "ABOVE"
    lines = [render_facts(describe_machine()), "", render_table(_HEADERS, rows), ""]
    return "\n".join([*lines, f"Overhead is {verdict} the limit of {LIMIT_US:g} us per run."])


def is_within_limit(results: list[Overhead]) -> bool:
    """Tell whether every model keeps the limit."""
    return all(result.overhead_us <= LIMIT_US for result in results)


def main() -> int:
    """Measure, print, and exit with 1 when a model is above the limit."""
    parser = argparse.ArgumentParser(prog="session.py", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    arguments = parser.parse_args()
    results = [measure_overhead(count) for count in (1, 4, 16)]
    if arguments.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
    else:
        print(render_report(results))
    return 0 if is_within_limit(results) else 1


if __name__ == "__main__":
    sys.exit(main())
