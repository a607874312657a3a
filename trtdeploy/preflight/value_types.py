"""Where an element type enters a model."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Place
from trtdeploy.preflight.prepared_model import CheckedNode


@dataclass(frozen=True)
class TypeSource:
    """One value of a wanted type.

    Attributes:
        name: Name of the value.
        dtype: The type that was looked for.
        role: What it is: ``constant``, ``input``, ``output``, or ``value``.
        place: The node that makes the value; None for constants, inputs, and outputs that other
            nodes pass the type on to.
    """

    name: str
    dtype: DType
    role: str
    place: Place | None


def find_type_sources(context: CheckContext, wanted: Set[DType]) -> Iterator[TypeSource]:
    """Yield the values that bring one of ``wanted`` into the model, and the outputs that have it.

    Sources are constants, model inputs, and the outputs of nodes none of whose inputs already has
    the type; nodes that merely pass the type on are not repeated.
    """
    main = context.prepared.index.main
    for scope in context.prepared.index.scopes:
        for name, tensor in scope.initializers.items():
            dtype = DType.from_onnx(tensor.data_type)
            if dtype in wanted:
                yield TypeSource(name, dtype, "constant", None)
    for value in context.prepared.model.graph.input:
        if main.type_of(value.name) in wanted:
            yield TypeSource(value.name, main.type_of(value.name), "input", None)
    found: set[str] = set()
    for checked in context.prepared.nodes:
        for source in _find_at_node(checked, wanted):
            found.add(source.name)
            yield source
    for output in context.prepared.model.graph.output:
        dtype = main.type_of(output.name)
        if dtype in wanted and output.name not in found:
            yield TypeSource(output.name, dtype, "output", None)


def _find_at_node(checked: CheckedNode, wanted: Set[DType]) -> Iterator[TypeSource]:
    scope = checked.scope
    incoming = {scope.type_of(name) for name in checked.node.input if name}
    for name in checked.node.output:
        dtype = scope.type_of(name) if name else DType.UNDEFINED
        if dtype in wanted and dtype not in incoming:
            role = "output" if scope.parent is None and name in scope.outputs else "value"
            yield TypeSource(name, dtype, role, checked.place)
