"""The kinds of limits a TensorRT parser puts on operators it otherwise knows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import AttributeValue, value_of
from trtdeploy.graph.index import Scope
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.prepared_model import CheckedNode
from trtdeploy.preflight.target import CheckTarget, parse_version

RTX = "tensorrt_rtx"
ALL_TENSORRT = "tensorrt"
BOTH_ENGINES = (ALL_TENSORRT, RTX)


@dataclass(frozen=True)
class Restriction(ABC):
    """One limit.

    Attributes:
        operators: Operators that have it.
        engines: Whom it binds: ``tensorrt``, ``tensorrt<10``, ``tensorrt_rtx``.
        remedy: What to do about a node that breaks it.
    """

    code: ClassVar[str]
    """Of its findings; one per kind of limit."""

    operators: tuple[str, ...]
    engines: tuple[str, ...]
    remedy: str

    def binds(self, target: CheckTarget) -> bool:
        """True when the limit holds for the target; an unknown version counts as the newest."""
        return any(_matches(engine, target) for engine in self.engines)

    @abstractmethod
    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return how the node breaks the limit; empty when it does not."""


def _matches(engine: str, target: CheckTarget) -> bool:
    backend, sign, bound = engine.partition("<")
    if backend != target.backend:
        return False
    return not sign or (bool(target.version) and target.version < parse_version(bound))


@dataclass(frozen=True)
class OneOutput(Restriction):
    """Only the first output may exist; a second one is refused even if nobody reads it."""

    code = "extra-output"

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return which further outputs there are."""
        extra = [name for name in checked.node.output[1:] if name]
        if not extra:
            return ""
        return f"only its first output is supported, not {', '.join(map(repr, extra))}"


@dataclass(frozen=True)
class AttributeValues(Restriction):
    """An attribute may have a few values only; a list must hold nothing else."""

    code = "attribute-value"

    attribute: str
    allowed: tuple[AttributeValue, ...]

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return the value and what is allowed."""
        value = value_of(checked.node, self.attribute)
        given = value if isinstance(value, tuple) else (value,)
        if value is None or all(part in self.allowed for part in given):
            return ""
        allowed = ", ".join(map(str, self.allowed)) or "nothing"
        return f"attribute {self.attribute} is {value!r}; supported: {allowed}"


@dataclass(frozen=True)
class InputRank(Restriction):
    """The first input must have a certain number of axes."""

    code = "input-rank"

    rank: int

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return the rank found and the rank wanted."""
        name = input_name(checked.node, 0)
        dims = context.symbolic.shape_of(name)
        if dims is None or len(dims) == self.rank:
            return ""
        return f"input {name!r} has {len(dims)} axes; only {self.rank} are supported"


@dataclass(frozen=True)
class InputTypes(Restriction):
    """Some inputs may not have certain element types."""

    code = "input-type"

    refused: frozenset[DType]
    attribute: tuple[str, int] | None = None
    """The limit holds only while this attribute has this value (also when it is absent)."""

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return the input and its type."""
        if self.attribute is not None:
            name, wanted = self.attribute
            if value_of(checked.node, name) not in (None, wanted):
                return ""
        for name in checked.node.input[:2]:
            dtype = checked.scope.type_of(name) if name else DType.UNDEFINED
            if dtype in self.refused:
                return f"input {name!r} is {dtype.label}, which it does not accept"
        return ""


@dataclass(frozen=True)
class BuildTimeOperand(Restriction):
    """An input must be known when the engine is built."""

    code = "runtime-operand"

    slot: int
    shapes_are_known: bool = False
    """Values computed from shapes count as known."""

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return which operand is computed at run time."""
        name = input_name(checked.node, self.slot)
        if not name or self._is_known(checked.scope, name):
            return ""
        return f"input {name!r} is computed at run time; it must be a constant"

    def _is_known(self, scope: Scope, name: str) -> bool:
        pending, seen = [name], set()
        while pending:
            current = pending.pop()
            if current in seen or scope.constant_of(current) is not None:
                continue
            seen.add(current)
            producer = scope.producer_of(current)
            if producer is None:
                return False  # a model input, or a value of a loop
            if producer.op_type in ("Shape", "Size"):
                if not self.shapes_are_known:
                    return False
                continue
            pending.extend(source for source in producer.input if source)
        return True


@dataclass(frozen=True)
class OperandLimit(Restriction):
    """A constant operand may not exceed a number."""

    code = "operand-too-large"

    slot: int
    limit: int

    def explain(self, context: CheckContext, checked: CheckedNode) -> str:
        """Return the value and the limit."""
        name = input_name(checked.node, self.slot)
        values = context.constant_of(checked.scope, name)
        if values is None or not values.size or int(values.max()) <= self.limit:
            return ""
        return f"{name!r} is {int(values.max())}; at most {self.limit} is supported"
