"""Who produces and who reads each value, across sub-graphs, with its element type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, shape_inference

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.model import (
    ONNX_ERRORS,
    OnnxModel,
    subgraphs_of,
    walk_graphs,
    walk_nodes,
)
from trtdeploy.graph.onnx_defects import (
    find_missing_domains,
    import_used_domains,
    is_dangerous,
    shield_crashing_nodes,
)


@dataclass(frozen=True)
class Use:
    """A node that reads a value: input ``slot`` of ``node``, which lies in ``scope``."""

    node: NodeProto
    slot: int
    scope: Scope


@dataclass(eq=False)
class Scope:
    """One graph: the main graph, or the body of an If, Loop or Scan node.

    Attributes:
        uses: Readers of the values this scope owns, readers in nested scopes included.
        types: Element type of every value this scope owns; absent when it is not known.
    """

    graph: GraphProto
    parent: Scope | None
    owner: NodeProto | None
    nodes: list[NodeProto] = field(default_factory=list)
    producers: dict[str, NodeProto] = field(default_factory=dict)
    initializers: dict[str, TensorProto] = field(default_factory=dict)
    uses: dict[str, list[Use]] = field(default_factory=lambda: defaultdict(list))
    types: dict[str, DType] = field(default_factory=dict)
    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()
    children: list[Scope] = field(default_factory=list)

    def owns(self, name: str) -> bool:
        """True when the value is defined in this very graph."""
        return name in self.producers or name in self.initializers or name in self.inputs

    def resolve(self, name: str) -> Scope | None:
        """Return the scope that defines ``name``, seen from here; None if nobody does."""
        scope: Scope | None = self
        while scope is not None and not scope.owns(name):
            scope = scope.parent
        return scope

    def bodies_of(self, node: NodeProto) -> list[Scope]:
        """Return the graphs inside ``node``, which lies in this graph."""
        return [child for child in self.children if child.owner is node]

    def rename(self, old: str, new: str) -> None:
        """Rename a value that a node of this graph computes, wherever it is read."""
        producer = self.producers[new] = self.producers.pop(old)
        producer.output[list(producer.output).index(old)] = new
        self.uses[new] = self.uses.pop(old, [])
        for use in self.uses[new]:
            use.node.input[use.slot] = new
        if old in self.types:
            self.types[new] = self.types.pop(old)

    def producer_of(self, name: str) -> NodeProto | None:
        """Return the node that computes ``name``, from this scope or an outer one."""
        owner = self.resolve(name)
        return owner.producers.get(name) if owner else None

    def constant_of(self, name: str) -> TensorProto | None:
        """Return the initializer ``name`` stands for, from this scope or an outer one."""
        owner = self.resolve(name)
        return owner.initializers.get(name) if owner else None

    def uses_of(self, name: str) -> list[Use]:
        """Return all readers of ``name``, wherever it is defined."""
        owner = self.resolve(name)
        return owner.uses.get(name, []) if owner else []

    def type_of(self, name: str) -> DType:
        """Return the element type of ``name``; UNDEFINED when unknown or not a tensor."""
        owner = self.resolve(name)
        return owner.types.get(name, DType.UNDEFINED) if owner else DType.UNDEFINED


@dataclass
class ModelIndex:
    """All scopes of a model, outer before inner."""

    model: OnnxModel
    scopes: list[Scope]

    @property
    def main(self) -> Scope:
        """The scope of the main graph."""
        return self.scopes[0]

    def nodes(self) -> Iterator[tuple[Scope, NodeProto]]:
        """Yield every node with its scope."""
        for scope in self.scopes:
            for node in scope.nodes:
                yield scope, node


def build_index(model: OnnxModel) -> ModelIndex:
    """Index ``model``; element types come from ONNX shape inference on the structure alone."""
    scopes: list[Scope] = []
    _index_scope(model.graph, None, None, scopes)
    for scope in scopes:
        _index_uses(scope)
    _read_types(model.proto, scopes)
    return ModelIndex(model, scopes)


def _index_scope(
    graph: GraphProto, parent: Scope | None, owner: NodeProto | None, scopes: list[Scope]
) -> None:
    scope = Scope(graph, parent, owner, nodes=list(graph.node))
    scope.initializers = {t.name: t for t in graph.initializer}
    scope.initializers.update({s.values.name: s.values for s in graph.sparse_initializer})
    scope.inputs = frozenset(v.name for v in graph.input if v.name not in scope.initializers)
    scope.outputs = frozenset(v.name for v in graph.output)
    scope.producers = {name: node for node in scope.nodes for name in node.output if name}
    scopes.append(scope)
    if parent is not None:
        parent.children.append(scope)
    for node in scope.nodes:
        for body in subgraphs_of(node):
            _index_scope(body, scope, node, scopes)


def _index_uses(scope: Scope) -> None:
    for node in scope.nodes:
        for slot, name in enumerate(node.input):
            owner = scope.resolve(name) if name else None
            if owner is not None:
                owner.uses[name].append(Use(node, slot, scope))


def infer_types(proto: ModelProto) -> ModelProto:
    """Return the model with inferred types, whatever it is made of.

    Some nodes would crash onnx, and this process; and onnx infers nothing at all about a model
    that uses an operator set which it does not import.
    """
    dangerous = any(is_dangerous(node) for node in walk_nodes(proto.graph))
    if dangerous or find_missing_domains(proto):
        guarded = ModelProto()
        guarded.CopyFrom(proto)
        if dangerous:
            shield_crashing_nodes(guarded.graph)
        import_used_domains(guarded)
        proto = guarded
    try:
        return shape_inference.infer_shapes(proto)
    except ONNX_ERRORS:
        return proto  # what the file itself declares is still usable


def _read_types(proto: ModelProto, scopes: list[Scope]) -> None:
    inferred = infer_types(proto)
    for scope, graph in zip(scopes, walk_graphs(inferred.graph), strict=True):
        for values in (graph.value_info, graph.input, graph.output):
            for value in values:
                code = value.type.tensor_type.elem_type
                if code:
                    scope.types[value.name] = DType.from_onnx(code)
        for name, tensor in scope.initializers.items():
            scope.types[name] = DType.from_onnx(tensor.data_type)
