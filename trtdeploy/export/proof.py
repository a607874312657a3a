"""Proves a written ONNX file against the model it came from, in ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.core.errors import CheckFailedError, TrtdeployError
from trtdeploy.export.result import ExportProof, ProofPoint
from trtdeploy.parity.batch import find_batch_layout, join_parts, split_feeds
from trtdeploy.parity.runner import Array, Outputs

_MIN_BATCH = 2


@dataclass(frozen=True)
class Sample:
    """Inputs at one point, and what the source makes of them.

    Attributes:
        sizes: Size by symbol.
        feeds: Arrays by input.
        expected: Arrays by output.
    """

    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]
    expected: Outputs

    def __str__(self) -> str:
        """Return ``batch=1, height=96``, or ``its fixed sizes``."""
        return ", ".join(f"{k}={v}" for k, v in self.sizes.items()) or "its fixed sizes"


QUANTIZED_RTOL = 2e-2
"""For files with Q/DQ: values on a tie may round to either side, one step of 1/127 apart."""


_ROUNDING_MARGIN = 8
"""Two honest FP32 programs round in different orders: that many times the distance from FP64."""
_BATCH_MARGIN = 10
"""Another batch is multiplied in other blocks; samples that really mix differ by far more."""


@dataclass(frozen=True)
class Reference:
    """The source of the file, as far as a proof needs it.

    Attributes:
        name: What computed the expected outputs.
        example: Size by symbol that the file was exported with.
        make_sample: Makes a sample at other sizes; names the symbol when the file fails.
        measure_rounding: Returns how far FP32 rounding alone moves each output of a sample,
            relative to its largest magnitude; asked for where an error exceeds the tolerance.
    """

    name: str
    example: Mapping[str, int] = field(default_factory=dict)
    make_sample: Callable[[Mapping[str, int]], Sample] | None = None
    measure_rounding: Callable[[Sample], Mapping[str, float]] | None = None


def prove_file(
    path: Path, samples: Sequence[Sample], *, rtol: float, reference: Reference
) -> ExportProof:
    """Compare the file with its source at every sample.

    Args:
        path: The file.
        samples: At least one.
        rtol: Largest accepted error of an output, relative to its largest magnitude.
        reference: The source.

    Raises:
        CheckFailedError: The file does not run at a sample, or computes something else.
        CompileError: ONNX Runtime refuses the file.
    """
    with OnnxRuntimeSession(path, optimize=False) as session:
        points = []
        for sample in samples:
            outputs = _run(session, sample, reference)
            points.append(compare_outputs(sample, outputs, rtol, reference.measure_rounding))
        independent = _check_batch(session, samples, rtol)
    return ExportProof("proven", reference.name, tuple(points), independent)


def _run(session: OnnxRuntimeSession, sample: Sample, reference: Reference) -> Outputs:
    try:
        return session.run(sample.feeds)
    except TrtdeployError as error:
        guilty = _find_guilty(session, sample, reference)
        because = f" (because of {guilty!r})" if guilty else ""
        raise CheckFailedError(
            f"the exported file fails at {sample}{because}: {error.message}",
            hint="A size of the example is baked in at that node; node names follow the modules. "
            "Take sizes from x.shape there, or keep this axis out of --dynamic.",
        ) from error


def _find_guilty(session: OnnxRuntimeSession, sample: Sample, reference: Reference) -> str:
    """Change one size of the example at a time, to see which one is fixed inside."""
    if reference.make_sample is None:
        return ""
    for symbol, size in sample.sizes.items():
        alone = reference.make_sample({**reference.example, symbol: size})
        try:
            session.run(alone.feeds)
        except TrtdeployError:
            return symbol
    return ""


def compare_outputs(
    sample: Sample,
    outputs: Outputs,
    rtol: float,
    measure_rounding: Callable[[Sample], Mapping[str, float]] | None = None,
) -> ProofPoint:
    """Return the error of a sample.

    Raises:
        CheckFailedError: It is larger than ``rtol`` and than what rounding explains, or a shape
            differs.
    """
    rounding: Mapping[str, float] | None = None
    worst, name_of_worst = 0.0, ""
    for name, expected in sample.expected.items():
        found = outputs[name]
        if found.shape != expected.shape:
            raise CheckFailedError(
                f"at {sample}, output {name!r} of the file has shape {found.shape}, that of the "
                f"source {expected.shape}: a size of the example is baked in",
                hint="Look for a number where x.shape belongs, near the end of the model.",
            )
        error = measure_error(expected, found)
        if not error <= rtol and rounding is None:
            rounding = measure_rounding(sample) if measure_rounding else {}
        allowed = max(rtol, _ROUNDING_MARGIN * (rounding or {}).get(name, 0.0))
        if not error <= allowed:
            raise CheckFailedError(
                f"at {sample}, output {name!r} of the file differs from the source by {error:.3g} "
                f"of its largest magnitude; at most {allowed:.3g} is expected",
                hint="A value of the example may be baked in (a decision, a mask, a position). "
                "--proof-tolerance accepts a larger difference.",
            )
        if error >= worst:
            worst, name_of_worst = error, name
    return ProofPoint(dict(sample.sizes), worst, name_of_worst)


def measure_error(expected: Array, found: Array) -> float:
    """Return the largest difference relative to the largest finite magnitude expected.

    The same special value in the same place is no difference; any other is infinite.
    """
    if expected.dtype.kind in "iub":
        return 0.0 if np.array_equal(expected, found) else float("inf")
    with np.errstate(invalid="ignore", over="ignore"):
        wide, other = expected.astype(np.float64), found.astype(np.float64)
        same = (wide == other) | (np.isnan(wide) & np.isnan(other))
        finite = np.isfinite(wide)
        if not np.all(same | (finite & np.isfinite(other))):
            return float("inf")
        difference = np.where(same, 0.0, np.abs(wide - other))
    scale = float(np.abs(wide[finite]).max(initial=0.0))
    largest = float(difference.max(initial=0.0))
    return largest / scale if scale else largest


def _check_batch(
    session: OnnxRuntimeSession, samples: Sequence[Sample], rtol: float
) -> bool | None:
    """Tell whether each sample of a batch gets what it gets alone; None without a batch."""
    layout = find_batch_layout(session.inputs, session.outputs)
    if layout is None:
        return None
    axes = layout.inputs
    size = {id(s): next((s.feeds[n].shape[axis] for n, axis in axes.items()), 1) for s in samples}
    whole = max(samples, key=lambda sample: size[id(sample)])
    count = size[id(whole)]
    if count < _MIN_BATCH:
        return None
    parts = [session.run(part) for part in split_feeds(whole.feeds, layout, [1] * count)]
    outputs = session.run(whole.feeds)
    joined = join_parts(parts, outputs, layout)
    return all(
        joined[name].shape == outputs[name].shape
        and measure_error(outputs[name], joined[name]) <= _BATCH_MARGIN * rtol
        for name in outputs
    )
