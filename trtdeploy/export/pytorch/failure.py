"""Failures of PyTorch's exporters as errors that name module, line and remedy."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from trtdeploy.core.errors import InputError, TrtdeployError
from trtdeploy.export.pytorch.code_place import CodePlace, find_place_of_error, place_of_node

_FIXED = re.compile(
    r"L\['\w+'\](?:\[(?P<position>\d+)\])?\.size\(\)\[(?P<axis>\d+)\] as dynamic but your code "
    r"specialized it to be a constant \((?P<size>\d+)\)"
)
_GUARD = re.compile(r"Eq\((?P<symbol>s\d+), (?P<size>\d+)\)")
_LONGEST_TEXT = 300
_DATA_DEPENDENT = ("GuardOnDataDependentSymNode", "DataDependentOutputException")
_BRANCH_HINT = (
    "Compute both sides and choose with torch.where(condition, a, b), or use torch.cond; what is "
    "decided the same way for every input belongs into __init__."
)


class ConversionFailedError(Exception):
    """ONNX has no form for an operator of the program; another exporter may know one."""

    def __init__(self, reason: str, place: CodePlace | None) -> None:
        super().__init__(reason)
        self.place = place


class FixedSizesError(InputError):
    """Sizes cannot vary, with reasons by symbol; those that nobody asked for are fixed instead."""

    def __init__(self, reasons: Mapping[str, str], *, hint: str) -> None:
        rows = (f"{symbol!r} is asked to vary, but {why}" for symbol, why in reasons.items())
        super().__init__("; ".join(rows), hint=hint)
        self.reasons = dict(reasons)


class FixedAxis(NamedTuple):
    """A size that was asked to vary, of the input at a position, and that the model's code fixes.

    Attributes:
        size: The only size it has.
    """

    position: int
    axis: int
    size: int


@dataclass
class ShapeDecisions:
    """Places where code decided that a symbol has one size, as the tracer reports them."""

    found: list[tuple[str, int, CodePlace]] = field(default_factory=list)

    def add(self, text: str, place: CodePlace | None) -> None:
        """Remember a decision, given as the tracer's text ``Eq(s77, 2)``."""
        match = _GUARD.fullmatch(text)
        if match and place is not None:
            self.found.append((match["symbol"], int(match["size"]), place))

    def find(self, size: int) -> CodePlace | None:
        """Return where a symbol was first decided to have this size."""
        return next((place for _, decided, place in self.found if decided == size), None)


def read_fixed_axes(text: str) -> list[FixedAxis]:
    """Return the axes that ``torch.export`` says were specialized."""
    return [
        FixedAxis(int(match["position"] or 0), int(match["axis"]), int(match["size"]))
        for match in _FIXED.finditer(text)
    ]


def _walk_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def is_data_dependent(error: BaseException) -> bool:
    """Tell whether the model's code looks at values to decide what to compute."""
    return any(
        type(link).__name__ in _DATA_DEPENDENT or "data-dependent" in str(link)[:2000]
        for link in _walk_causes(error)
    )


def explain_data_dependence(error: BaseException, model: torch.nn.Module) -> TrtdeployError:
    """Return the error for code that decides by values."""
    place = find_place_of_error(error, model) or "a place that PyTorch does not name"
    return InputError(
        f"the model decides by the values of a tensor, which an ONNX graph cannot follow: {place}",
        hint=_BRANCH_HINT,
    )


def explain_fixed_axes(
    fixed: Sequence[FixedAxis],
    names: Sequence[str],
    dynamic: Mapping[str, Mapping[int, str]],
    decisions: ShapeDecisions,
) -> TrtdeployError:
    """Return the error for sizes that were asked to vary and cannot."""
    reasons: dict[str, str] = {}
    for entry in fixed:
        name = names[entry.position]
        symbol = dynamic.get(name, {}).get(entry.axis, "?")
        place = decisions.find(entry.size)
        where = f" at {place}" if place else ""
        reasons.setdefault(
            symbol,
            f"the model's code fixes axis {entry.axis} of {name!r} to the size of the "
            f"example{where}",
        )
    first = names[fixed[0].position]
    return FixedSizesError(
        reasons,
        hint="Take sizes from the tensor (x.shape[0], x.flatten(1)) instead of numbers; or keep "
        f"this size fixed by leaving it out of --dynamic {first}:AXIS=SYMBOL (none at all: "
        f"--dynamic {first}:).",
    )


def explain_run_failure(
    error: BaseException, model: torch.nn.Module, shapes: str, *, widened: bool
) -> InputError:
    """Return the error for a model that does not even run on its example."""
    place = find_place_of_error(error, model)
    hint = (
        "Its FP16 or BF16 weights and inputs were made FP32 before it ran; code that casts there "
        "must take the type from a tensor, as in x.to(self.fc.weight.dtype). If that is not it: "
        if widened
        else ""
    )
    return InputError(
        f"the model fails on its example inputs ({shapes}): {shorten(error)}"
        + (f"; at {place}" if place else ""),
        hint=f"{hint}Give inputs that fit with --input NAME:DTYPE:SHAPE[:LOW..HIGH]; integer "
        "inputs are 0 or 1 unless a range is given.",
    )


def find_place_of_conversion(error: BaseException) -> CodePlace | None:
    """Return where the operator comes from that could not be converted.

    PyTorch names it in texts only, and as it is called after decomposition: ``linalg_eig`` for
    ``linalg_eigvals``. The frames that failed hold it as a node.
    """
    for link in _walk_causes(error):
        for frame, _ in traceback.walk_tb(link.__traceback__):
            node = frame.f_locals.get("node")
            if isinstance(node, torch.fx.Node) and node.op == "call_function":
                return place_of_node(node)
    return None


def explain_export_failure(
    error: BaseException, model: torch.nn.Module, exporter: str, other: str
) -> InputError:
    """Return the error for an exporter that gave up."""
    known = getattr(error, "place", None)
    place = known if isinstance(known, CodePlace) else find_place_of_error(error, model)
    return InputError(
        f"the {exporter} exporter of PyTorch {torch.__version__} failed: {shorten(error)}"
        + (f"; at {place}" if place else ""),
        hint=f"Try --exporter {other}, another --opset, or fewer --dynamic axes.",
    )


def shorten(error: BaseException) -> str:
    """Return the innermost cause in one line."""
    *_, error = _walk_causes(error)
    text = " ".join(line.strip() for line in str(error).splitlines()[:4] if line.strip())
    if isinstance(error, ConversionFailedError):
        return text
    return f"{type(error).__name__}: {text[:_LONGEST_TEXT]}".rstrip(": ")
