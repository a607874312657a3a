"""Proves a written ONNX file against the model it came from, in ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.config.axis_roles import is_anonymous
from trtdeploy.config.batch_layout import BatchLayout, find_free_batch
from trtdeploy.core.arrays import Array, Feeds, Outputs
from trtdeploy.core.errors import CheckFailedError, TrtdeployError
from trtdeploy.export.difference import Difference, compare_arrays, find_worst
from trtdeploy.export.proof_sizes import format_sizes
from trtdeploy.export.result import ExportProof, ProofPoint
from trtdeploy.samples.batch import (
    count_samples,
    join_parts,
    split_feeds,
)

_FEWEST_PARTS = 2


@dataclass(frozen=True)
class ProofSample:
    """Inputs at one point, and what the source makes of them.

    Attributes:
        sizes: Size by symbol; 0 or 1 by input that an If decides by.
        feeds: Arrays by input.
        expected: Arrays by output; empty where nobody knows what comes out.
    """

    sizes: Mapping[str, int]
    feeds: Mapping[str, Array]
    expected: Outputs

    def __str__(self) -> str:
        """Return ``batch=1, height=96``, or ``its fixed sizes``."""
        return format_sizes(self.sizes)


QUANTIZED_RTOL = 2e-2
"""For files with Q/DQ: values on a tie may round to either side, one step of 1/127 apart."""

_BAKED_SIZE = (
    "A size of the example is baked in at that node; node names follow the modules. Take sizes "
    "from x.shape there, or keep this axis out of --dynamic."
)
_BAKED_VALUE = (
    "A value of the example may be baked in (a decision, a mask, a position). "
    "--proof-tolerance accepts a larger difference."
)


@dataclass(frozen=True)
class Reference:
    """The source of a file, as far as a proof needs it.

    Attributes:
        name: What computed the expected outputs.
        example: Size by symbol that the file was exported with.
        make_sample: Makes a sample at other sizes; names the symbol when the file fails.
        run: Runs the source; tells samples that it mixes from samples that only the file mixes.
        run_others: Returns what the source computes for a sample when it rounds otherwise; asked
            for where an error exceeds the tolerance.
        batch_margin: Times the tolerance that a batch may be off from its parts. A framework
            multiplies another batch in other blocks; samples that really mix differ by far more.
        is_mixing_wrong: The file must keep the samples of a batch apart, whatever the source does.
        failure_hint: What to do about a file that does not run.
        difference_hint: What to do about one that computes something else.
    """

    name: str
    example: Mapping[str, int] = field(default_factory=dict)
    make_sample: Callable[[Mapping[str, int]], ProofSample] | None = None
    run: Callable[[Feeds], Outputs] | None = None
    run_others: Callable[[ProofSample], Sequence[Outputs]] | None = None
    batch_margin: int = 10
    is_mixing_wrong: bool = False
    failure_hint: str = _BAKED_SIZE
    difference_hint: str = _BAKED_VALUE


def prove_file(
    path: Path, samples: Sequence[ProofSample], *, rtol: float, reference: Reference
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
        proof = FileProof(session, reference, rtol)
        points = [proof.compare(sample) for sample in samples]
        layout = find_free_batch(session.inputs, session.outputs)
        independent = None
        if layout is not None and not _counts_several(layout):
            whole = max(samples, key=lambda sample: count_samples(sample.feeds, layout))
            independent = proof.check_batch(whole, layout)
    return ExportProof("proven", reference.name, tuple(points), independent)


def _counts_several(layout: BatchLayout) -> bool:
    """Tell whether the inputs count different things, which cannot be split alike."""
    return sum(not is_anonymous(symbol) for symbol in layout.symbols) > 1


class FileProof:
    """A written file that is held against its source.

    Args:
        session: Runs the file.
        reference: The source.
        rtol: Largest accepted error, as ``comparison`` defines it.
    """

    def __init__(self, session: OnnxRuntimeSession, reference: Reference, rtol: float) -> None:
        self._session = session
        self._reference = reference
        self._rtol = rtol

    def run(self, sample: ProofSample) -> Outputs:
        """Run the file.

        Raises:
            CheckFailedError: It does not run.
        """
        try:
            return self._session.run(sample.feeds)
        except TrtdeployError as error:
            because, hint = self._explain_failure(sample)
            raise CheckFailedError(
                f"the file fails at {sample}{because}: {error.message}", hint=hint
            ) from error

    def compare(self, sample: ProofSample) -> ProofPoint:
        """Return the error at a sample.

        Raises:
            CheckFailedError: It is larger than ``rtol`` and than what rounding explains, a shape or
                type differs, or the file does not run.
        """
        return self._require_equal(sample, self.run(sample))

    def agrees(self, sample: ProofSample) -> bool:
        """Tell whether the file computes what the source does.

        Inputs that the file does not have are left out: exporters drop what nothing reads.

        Raises:
            TrtdeployError: The file does not run.
        """
        taken = {spec.name for spec in self._session.inputs}
        outputs = self._session.run({n: a for n, a in sample.feeds.items() if n in taken})
        return self._measure(sample, [outputs], self._rtol)[1].equal

    def check_batch(self, whole: ProofSample, layout: BatchLayout) -> bool | None:
        """Tell whether a batch gives what its parts give; None where it has one part only.

        Args:
            whole: The batch, a multiple of the exported one.
            layout: Where it is.

        Raises:
            CheckFailedError: It does not, though it does in the source or must.
        """
        count = count_samples(whole.feeds, layout) // layout.exported
        if count < _FEWEST_PARTS:
            return None
        sizes = {**whole.sizes, **dict.fromkeys(layout.symbols, layout.exported)}
        cuts = split_feeds(whole.feeds, layout, [layout.exported] * count)
        alone = [ProofSample(sizes, part, {}) for part in cuts]
        parts = [self.run(sample) for sample in alone]
        joined = join_parts(parts, whole.expected, layout)
        name, worst = self._measure(whole, joined, self._reference.batch_margin * self._rtol)
        if worst.equal:
            return True
        if self._reference.run is not None:
            for sample, outputs in zip(alone, parts, strict=True):
                self._require_equal(
                    replace(sample, expected=self._reference.run(sample.feeds)), outputs
                )
        if self._reference.is_mixing_wrong:
            raise CheckFailedError(
                f"samples of a batch influence each other: at {whole}, output {name!r} is "
                f"{worst.worst} (an error of {worst.error:.2g})",
                hint=self._reference.difference_hint,
            )
        return False

    def _measure(
        self, sample: ProofSample, candidates: Sequence[Outputs], rtol: float
    ) -> tuple[str, Difference]:
        """Return the output that is furthest from what is expected, over all candidates."""

        @cache
        def run_others() -> Sequence[Outputs]:
            run = self._reference.run_others
            return run(sample) if run else ()

        def compare(name: str, expected: Array, found: Array) -> Difference:
            if (found.shape, found.dtype) != (expected.shape, expected.dtype):
                worst = f"{found.dtype} {found.shape} instead of {expected.dtype} {expected.shape}"
                return Difference(np.inf, equal=False, worst=worst)
            return compare_arrays(
                expected, found, rtol, lambda: [other[name] for other in run_others()]
            )

        return find_worst(
            (name, compare(name, expected, outputs[name]))
            for outputs in candidates
            for name, expected in sample.expected.items()
        )

    def _require_equal(self, sample: ProofSample, outputs: Outputs) -> ProofPoint:
        name, worst = self._measure(sample, [outputs], self._rtol)
        if worst.equal:
            return ProofPoint(dict(sample.sizes), worst.error, name)
        hint = self._reference.difference_hint
        found, expected = outputs[name], sample.expected[name]
        if found.shape != expected.shape:
            problem = (
                f"has shape {found.shape}, that of the source {expected.shape}: a size of the "
                "example is baked in"
            )
            hint = "Look for a number where x.shape belongs, near the end of the model."
        elif found.dtype != expected.dtype:
            problem = f"is {found.dtype}, that of the source {expected.dtype}"
            hint = "The exporter wrote another type; convert it near the end of the model."
        else:
            problem = (
                f"differs from the source: {worst.worst}. That is an error of {worst.error:.2g}; "
                f"at most {self._rtol:.2g} is expected, and rounding does not explain more"
            )
        raise CheckFailedError(f"at {sample}, output {name!r} of the file {problem}", hint=hint)

    def _explain_failure(self, sample: ProofSample) -> tuple[str, str]:
        """Change one size of the example at a time, to see which one is fixed inside."""
        example = self._reference.example
        if self._fails(example):
            return (
                ", and at the sizes of the example already",
                "The exporter wrote a graph that does not run; node names follow the modules. Try "
                "the other one with --exporter, or another operator there.",
            )
        for symbol, size in sample.sizes.items():
            if self._fails({**example, symbol: size}):
                return f" (because of {symbol!r})", self._reference.failure_hint
        return "", self._reference.failure_hint

    def _fails(self, sizes: Mapping[str, int]) -> bool:
        """Tell whether the file fails where its source runs."""
        if self._reference.make_sample is None:
            return False
        try:
            sample = self._reference.make_sample(sizes)
        except TrtdeployError:
            return False
        try:
            self._session.run(sample.feeds)
        except TrtdeployError:
            return True
        return False
