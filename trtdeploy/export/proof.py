"""Proves a written ONNX file against the model it came from, in ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from trtdeploy.backends.onnxruntime_session import OnnxRuntimeSession
from trtdeploy.config.axis_roles import is_anonymous
from trtdeploy.core.arrays import Array, Feeds, Outputs
from trtdeploy.core.errors import CheckFailedError, TrtdeployError
from trtdeploy.export.comparison import Comparison, compare_arrays, find_worst
from trtdeploy.export.proof_sizes import format_sizes
from trtdeploy.export.result import ExportProof, ProofPoint
from trtdeploy.parity.batch import (
    BatchLayout,
    count_samples,
    find_batch_layout,
    join_parts,
    split_feeds,
)

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
        return format_sizes(self.sizes)


QUANTIZED_RTOL = 2e-2
"""For files with Q/DQ: values on a tie may round to either side, one step of 1/127 apart."""

_BATCH_MARGIN = 10
"""Another batch is multiplied in other blocks; samples that really mix differ by far more."""


@dataclass(frozen=True)
class Reference:
    """The source of the file, as far as a proof needs it.

    Attributes:
        name: What computed the expected outputs.
        example: Size by symbol that the file was exported with.
        make_sample: Makes a sample at other sizes; names the symbol when the file fails.
        run: Runs the source; tells samples that it mixes from samples that only the file mixes.
        run_others: Returns what the source computes for a sample when it rounds otherwise; asked
            for where an error exceeds the tolerance.
    """

    name: str
    example: Mapping[str, int] = field(default_factory=dict)
    make_sample: Callable[[Mapping[str, int]], Sample] | None = None
    run: Callable[[Feeds], Outputs] | None = None
    run_others: Callable[[Sample], Sequence[Outputs]] | None = None


def prove_file(
    path: Path, samples: Sequence[Sample], *, rtol: float, reference: Reference
) -> ExportProof:
    """Compare the file with its source at every sample.

    Args:
        path: The file.
        samples: At least one.
        rtol: Largest accepted error, as ``comparison`` defines it.
        reference: The source.

    Raises:
        CheckFailedError: The file does not run at a sample, or computes something else.
        CompileError: ONNX Runtime refuses the file.
    """
    with OnnxRuntimeSession(path, optimize=False, quiet=True) as session:
        points = []
        for sample in samples:
            outputs = _run(session, sample, reference)
            points.append(_compare(sample, outputs, rtol, reference))
        independent = _check_batch(session, samples, rtol, reference)
    return ExportProof("proven", reference.name, tuple(points), independent)


def _run(session: OnnxRuntimeSession, sample: Sample, reference: Reference) -> Outputs:
    try:
        return session.run(sample.feeds)
    except TrtdeployError as error:
        because, hint = _explain_failure(session, sample, reference)
        raise CheckFailedError(
            f"the exported file fails at {sample}{because}: {error.message}", hint=hint
        ) from error


def _explain_failure(
    session: OnnxRuntimeSession, sample: Sample, reference: Reference
) -> tuple[str, str]:
    """Change one size of the example at a time, to see which one is fixed inside."""
    if _fails(session, reference, reference.example):
        return (
            ", and at the sizes of the example already",
            "The exporter wrote a graph that does not run; node names follow the modules. Try the "
            "other one with --exporter, or another operator there.",
        )
    hint = (
        "A size of the example is baked in at that node; node names follow the modules. Take sizes "
        "from x.shape there, or keep this axis out of --dynamic."
    )
    for symbol, size in sample.sizes.items():
        if _fails(session, reference, {**reference.example, symbol: size}):
            return f" (because of {symbol!r})", hint
    return "", hint


def _fails(session: OnnxRuntimeSession, reference: Reference, sizes: Mapping[str, int]) -> bool:
    """Tell whether the file fails where its source runs."""
    if reference.make_sample is None:
        return False
    try:
        sample = reference.make_sample(sizes)
    except TrtdeployError:
        return False
    try:
        session.run(sample.feeds)
    except TrtdeployError:
        return True
    return False


def _compare(sample: Sample, outputs: Outputs, rtol: float, reference: Reference) -> ProofPoint:
    """Return the error of a sample.

    Raises:
        CheckFailedError: It is larger than ``rtol`` and than what rounding explains, or a shape
            differs.
    """
    found = _compare_each(sample, outputs, rtol, reference)
    name, worst = find_worst(found)
    if not worst.equal:
        raise CheckFailedError(
            f"at {sample}, output {name!r} of the file differs from the source: {worst.worst}. "
            f"That is an error of {worst.error:.2g}; at most {rtol:.2g} is expected, and rounding "
            "does not explain more",
            hint="A value of the example may be baked in (a decision, a mask, a position). "
            "--proof-tolerance accepts a larger difference.",
        )
    return ProofPoint(dict(sample.sizes), worst.error, name)


def _compare_each(
    sample: Sample, outputs: Outputs, rtol: float, reference: Reference
) -> dict[str, Comparison]:
    @cache
    def run_others() -> Sequence[Outputs]:
        return reference.run_others(sample) if reference.run_others else ()

    def compare(name: str, expected: Array) -> Comparison:
        if outputs[name].shape != expected.shape:
            raise CheckFailedError(
                f"at {sample}, output {name!r} of the file has shape {outputs[name].shape}, that "
                f"of the source {expected.shape}: a size of the example is baked in",
                hint="Look for a number where x.shape belongs, near the end of the model.",
            )
        if outputs[name].dtype != expected.dtype:
            raise CheckFailedError(
                f"at {sample}, output {name!r} of the file is {outputs[name].dtype}, that of the "
                f"source {expected.dtype}",
                hint="The exporter wrote another type; convert it near the end of the model.",
            )
        return compare_arrays(
            expected, outputs[name], rtol, lambda: [other[name] for other in run_others()]
        )

    return {name: compare(name, expected) for name, expected in sample.expected.items()}


def _check_batch(
    session: OnnxRuntimeSession, samples: Sequence[Sample], rtol: float, reference: Reference
) -> bool | None:
    """Tell whether each sample of a batch gets what it gets alone; None without a batch.

    Raises:
        CheckFailedError: It does not, though it does in the source.
    """
    layout = find_batch_layout(session.inputs, session.outputs)
    if layout is None or _counts_several(session, layout):
        return None
    whole = max(samples, key=lambda sample: count_samples(sample.feeds, layout))
    count = count_samples(whole.feeds, layout)
    if count < _MIN_BATCH:
        return None
    shapes = {spec.name: spec.shape or () for spec in session.inputs}
    sizes = {**whole.sizes, **{str(shapes[n][axis]): 1 for n, axis in layout.inputs.items()}}
    alone = [Sample(sizes, part, {}) for part in split_feeds(whole.feeds, layout, [1] * count)]
    parts = [_run(session, sample, reference) for sample in alone]
    if _adds_up(whole, join_parts(parts, whole.expected, layout), rtol, reference):
        return True
    if reference.run is not None:
        for sample, outputs in zip(alone, parts, strict=True):
            known = replace(sample, expected=reference.run(sample.feeds))
            _compare(known, outputs, rtol, reference)
    return False


def _counts_several(session: OnnxRuntimeSession, layout: BatchLayout) -> bool:
    """Tell whether the inputs count different things, which cannot be split alike."""
    shapes = {spec.name: spec.shape or () for spec in session.inputs}
    symbols = {shapes[name][axis] for name, axis in layout.inputs.items()}
    return len({s for s in symbols if not (isinstance(s, str) and is_anonymous(s))}) > 1


def _adds_up(whole: Sample, joined: Outputs, rtol: float, reference: Reference) -> bool:
    if any(joined[name].shape != array.shape for name, array in whole.expected.items()):
        return False
    found = _compare_each(whole, joined, _BATCH_MARGIN * rtol, reference)
    return all(comparison.equal for comparison in found.values())
