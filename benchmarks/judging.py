"""Is a converted model right? ``python judging.py SOURCE CANDIDATE SHAPES.json`` prints JSON.

Loads both in ONNX Runtime on the CPU, feeds the same random inputs, and compares the outputs.
ONNX Runtime computes most FP16 nodes in FP32 on a CPU: it shows models that do not load and wrong
constants, not an overflow inside the network.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime as ort

RIGHT_WITHIN = 0.01
"""Largest error, relative to the FP32 output's largest magnitude, that still counts as right."""
_OTHER_DIM = 64
_INTEGERS_BELOW = 100
_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
_Feeds = dict[str, npt.NDArray[Any]]


def make_feeds(session: Any, shapes: dict[str, list[int]]) -> _Feeds:
    """Return one random value per input: normal floats, small integers, the same every time.

    Args:
        session: Says names, types and declared shapes.
        shapes: Dims by input name. Elsewhere a dynamic first axis is 1 and any other 64.
    """
    generator = np.random.default_rng(0)
    feeds: _Feeds = {}
    for value in session.get_inputs():
        declared = [
            dim if isinstance(dim, int) else 1 if axis == 0 else _OTHER_DIM
            for axis, dim in enumerate(value.shape)
        ]
        shape, dtype = shapes.get(value.name, declared), np.dtype(_NUMPY[value.type])
        if "mask" in value.name:
            feeds[value.name] = np.ones(shape, dtype)
        elif not shape:
            feeds[value.name] = np.array(16000, dtype)  # a scalar is a sample rate in these models
        elif dtype.kind == "f":
            feeds[value.name] = generator.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = generator.integers(0, _INTEGERS_BELOW, shape).astype(dtype)
    return feeds


def compare(reference: list[npt.NDArray[Any]], found: list[npt.NDArray[Any]]) -> float:
    """Return the largest error of any output relative to its FP32 amax; NaN counts as inf."""
    worst = 0.0
    for expected, actual in zip(reference, found, strict=True):
        if expected.shape != actual.shape:
            return float("inf")
        wide, other = expected.astype(np.float64), actual.astype(np.float64)
        scale = float(np.abs(wide).max(initial=0.0)) or 1.0
        error = float(np.abs(other - wide).max(initial=0.0)) / scale
        worst = max(worst, error if np.isfinite(error) else float("inf"))
    return worst


def judge(source: Path, candidate: Path, shapes: dict[str, list[int]]) -> dict[str, Any]:
    """Return whether ONNX Runtime loads ``candidate`` and how far it is from ``source``.

    Keys: ``loads``, ``error`` (relative; None when it does not load), ``right``, ``reason``.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 4
    expecting = ort.InferenceSession(source, options)
    feeds = make_feeds(expecting, shapes)
    reference = expecting.run(None, feeds)
    try:
        session = ort.InferenceSession(candidate, options)
        types = {value.name: _NUMPY[value.type] for value in session.get_inputs()}
        found = session.run(None, {name: feeds[name].astype(types[name]) for name in types})
    except Exception as cause:  # ONNX Runtime has many classes here, without a common one
        return {"loads": False, "error": None, "right": False, "reason": str(cause)[:300]}
    error = compare(reference, found)
    return {"loads": True, "error": error, "right": error <= RIGHT_WITHIN, "reason": ""}


def main() -> None:
    """Judge what the command line names."""
    source, candidate, shapes = sys.argv[1:]
    verdict = judge(Path(source), Path(candidate), json.loads(shapes))
    print(json.dumps(verdict))


if __name__ == "__main__":
    main()
