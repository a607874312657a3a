"""A copy of the model that checks can read without fear of what the file may hold."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import EncodeError
from onnx import NodeProto, checker, defs

from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel, subgraphs_of, walk_nodes
from trtdeploy.graph.passes.drop_initializer_inputs import DropInitializerInputsPass
from trtdeploy.graph.passes.inline_functions import InlineFunctionsPass
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass
from trtdeploy.preflight.finding import Place
from trtdeploy.preflight.labels import label_nodes, place_of, translate_keys

INVALID_DOMAIN = "trtdeploy.invalid"
"""Where nodes go that ONNX does not accept, so that no check has to survive them."""

SHIELDED_DOMAIN = "trtdeploy.shielded"
"""Where nodes go that are valid and whose inference code in onnx 1.23 dereferences a null pointer
when the type of an input is unknown (found by inferring every operator with untyped inputs)."""

_CRASHING_OPERATORS = frozenset(
    {
        ("", "RegexFullMatch"),
        ("ai.onnx.ml", "DictVectorizer"),
        ("ai.onnx.ml", "LabelEncoder"),
        ("ai.onnx.ml", "TreeEnsemble"),
    }
)

ONNX_REFUSALS = (checker.ValidationError, RuntimeError, ValueError, TypeError, EncodeError)
"""What ONNX's own functions raise for models they cannot handle."""


@dataclass(frozen=True)
class CheckedNode:
    """A node of the prepared model: its scope, and what the user calls it."""

    scope: Scope
    node: NodeProto
    place: Place

    @property
    def is_standard(self) -> bool:
        """True for a well-formed node of the standard operator set."""
        if self.node.domain == SHIELDED_DOMAIN:
            return self.place.domain in ONNX_DOMAINS
        return self.node.domain in ONNX_DOMAINS


@dataclass(frozen=True)
class Refusal:
    """A node that the ONNX specification does not allow, and why."""

    place: Place
    reason: str


@dataclass(frozen=True)
class PreparedModel:
    """The model with functions inlined, constants as initializers and malformed nodes set aside.

    Attributes:
        model: The copy. Its node names are keys of ``labels``.
        index: Producers, readers and types of the copy.
        nodes: Every node, outer graphs before inner ones.
        labels: What the user calls each node.
        refusals: Nodes that ONNX does not accept; in ``nodes`` they have ``INVALID_DOMAIN``.
        function_problem: Why the model-local functions could not be inlined; empty if they were.
    """

    model: OnnxModel
    index: ModelIndex
    nodes: tuple[CheckedNode, ...]
    labels: dict[str, Place]
    refusals: tuple[Refusal, ...]
    function_problem: str


def prepare_model(model: OnnxModel) -> PreparedModel:
    """Copy ``model`` into the form that checks read."""
    copied = model.copy()
    labels = label_nodes(copied.proto)
    problem = _inline_functions(copied)
    DropInitializerInputsPass()(copied)
    for node in walk_nodes(copied.graph):
        if node.domain in ONNX_DOMAINS:
            node.domain = ""
    _import_missing_domains(copied)
    refusals = tuple(
        Refusal(place_of(labels, node), translate_keys(labels, reason))
        for node, reason in _set_aside_refused_nodes(copied)
    )
    for node in walk_nodes(copied.graph):
        if (node.domain, node.op_type) in _CRASHING_OPERATORS:
            node.domain = SHIELDED_DOMAIN
    PromoteConstantsPass()(copied)
    index = build_index(copied)
    nodes = tuple(CheckedNode(s, n, place_of(labels, n)) for s, n in index.nodes())
    return PreparedModel(copied, index, nodes, labels, refusals, problem)


def _inline_functions(model: OnnxModel) -> str:
    try:
        InlineFunctionsPass()(model)
    except ONNX_REFUSALS as error:
        del model.proto.functions[:]
        return str(error)
    return ""


def _import_missing_domains(model: OnnxModel) -> None:
    """Name every used operator set: ONNX infers nothing about a model that leaves one out."""
    imported = {"" if o.domain in ONNX_DOMAINS else o.domain for o in model.proto.opset_import}
    used = {node.domain for node in walk_nodes(model.graph)} | {INVALID_DOMAIN, SHIELDED_DOMAIN}
    for domain in sorted(used - imported):
        entry = model.proto.opset_import.add()
        entry.domain = domain
        entry.version = 1 if domain else defs.onnx_opset_version()


def _set_aside_refused_nodes(model: OnnxModel) -> list[tuple[NodeProto, str]]:
    context = type(checker.DEFAULT_CONTEXT)()
    context.ir_version = model.proto.ir_version
    context.opset_imports = {
        "" if o.domain in ONNX_DOMAINS else o.domain: o.version for o in model.proto.opset_import
    }
    refused = []
    for node in walk_nodes(model.graph):
        try:
            checker.check_node(_without_bodies(node), context)
        except ONNX_REFUSALS as error:
            refused.append((node, str(error)))
    for node, _ in refused:
        node.domain = INVALID_DOMAIN
    return refused


def _without_bodies(node: NodeProto) -> NodeProto:
    """Return the node with empty bodies: checked alone, a body cannot see the outer values."""
    if not subgraphs_of(node):
        return node
    copied = NodeProto()
    copied.CopyFrom(node)
    for body in subgraphs_of(copied):
        body.Clear()
        body.name = "body"
    return copied
