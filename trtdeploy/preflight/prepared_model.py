"""A copy of the model that checks can read without fear of what the file may hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from onnx import NodeProto, checker

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import (
    ONNX_DOMAINS,
    ONNX_ERRORS,
    OnnxModel,
    subgraphs_of,
    walk_nodes,
)
from trtdeploy.graph.onnx_defects import (
    SHIELDED_DOMAIN,
    find_damaged_constants,
    find_fatal_attribute,
    forget_impossible_sizes,
    import_used_domains,
    shield_crashing_nodes,
)
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass
from trtdeploy.graph.passes.drop_initializer_inputs import DropInitializerInputsPass
from trtdeploy.graph.passes.inline_functions import InlineFunctionsPass
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass
from trtdeploy.graph.passes.sort_nodes import SortNodesPass
from trtdeploy.preflight.finding import Place
from trtdeploy.preflight.labels import label_nodes, place_of, translate_keys

INVALID_DOMAIN = "trtdeploy.invalid"
"""Where nodes go that ONNX does not accept, so that no check has to survive them."""

_LARGEST_INT = (1 << 31) - 1
"""Version numbers are 64 bits wide in the file and 32 bits wide in ONNX's own code."""


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
    """The model sorted, with functions inlined, constants as initializers, malformed nodes aside.

    Attributes:
        model: The copy. Its node names are keys of ``labels``.
        index: Producers, readers and types of the copy.
        nodes: Every node, outer graphs before inner ones.
        labels: What the user calls each node.
        refusals: Nodes that ONNX does not accept; in ``nodes`` they have ``INVALID_DOMAIN``.
        problems: What kept the copy from taking this form: functions that call themselves, sparse
            tensors that are damaged, nodes that depend on their own result.
        damaged_constants: Constants whose data did not fit their shape; they are empty now.
    """

    model: OnnxModel
    index: ModelIndex
    nodes: tuple[CheckedNode, ...]
    labels: dict[str, Place]
    refusals: tuple[Refusal, ...]
    problems: tuple[str, ...]
    damaged_constants: tuple[str, ...]


def prepare_model(model: OnnxModel) -> PreparedModel:
    """Copy ``model`` into the form that checks read."""
    copied = model.copy()
    labels = label_nodes(copied.proto)
    problems = [_apply(InlineFunctionsPass(), copied)]
    del copied.proto.functions[:]
    DropInitializerInputsPass()(copied)
    for node in walk_nodes(copied.graph):
        if node.domain in ONNX_DOMAINS:
            node.domain = ""
    import_used_domains(copied.proto, INVALID_DOMAIN, SHIELDED_DOMAIN)
    refusals = tuple(
        Refusal(place_of(labels, node), translate_keys(labels, reason))
        for node, reason in _set_aside_refused_nodes(copied)
    )
    shield_crashing_nodes(copied.graph)
    problems += [_apply(change, copied) for change in (PromoteConstantsPass(), SortNodesPass())]
    forget_impossible_sizes(copied)
    damaged = tuple(find_damaged_constants(copied))
    # converting an invalid graph can crash the converter: what needs a higher opset stays as it is
    AdoptContribQuantizationPass(raise_opset=False)(copied)
    index = build_index(copied)
    return PreparedModel(
        model=copied,
        index=index,
        nodes=tuple(CheckedNode(s, n, place_of(labels, n)) for s, n in index.nodes()),
        labels=labels,
        refusals=refusals,
        problems=tuple(translate_keys(labels, problem) for problem in problems if problem),
        damaged_constants=damaged,
    )


def _apply(change: Callable[[OnnxModel], None], model: OnnxModel) -> str:
    """Apply a pass; return why it could not be applied, empty if it could."""
    try:
        change(model)
    except ModelFileError as error:
        return error.message
    except ONNX_ERRORS as error:
        return str(error)
    return ""


def _set_aside_refused_nodes(model: OnnxModel) -> list[tuple[NodeProto, str]]:
    context = type(checker.DEFAULT_CONTEXT)()
    context.ir_version = min(max(model.proto.ir_version, 0), _LARGEST_INT)
    context.opset_imports = {
        "" if o.domain in ONNX_DOMAINS else o.domain: min(max(o.version, 0), _LARGEST_INT)
        for o in model.proto.opset_import
    }
    refused = []
    for node in walk_nodes(model.graph):
        try:
            checker.check_node(_without_bodies(node), context)
        except ONNX_ERRORS as error:
            refused.append((node, str(error)))
            continue
        reason = find_fatal_attribute(node)
        if reason:
            refused.append((node, reason))
    for node, reason in refused:
        if not is_early_axis(Place(node.name, node.op_type, node.domain), reason):
            node.domain = INVALID_DOMAIN
    return refused


def is_early_axis(place: Place, reason: str) -> bool:
    """True for a Q/DQ node whose only flaw is an axis before opset 13.

    ONNX Runtime's quantizer writes such files, and TensorRT's parser reads them as they are meant
    (TensorRT-RTX 1.7.1), so the other checks look at these nodes too.
    """
    return (
        place.op_type in ("QuantizeLinear", "DequantizeLinear")
        and "Unrecognized attribute: axis " in reason
    )


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
