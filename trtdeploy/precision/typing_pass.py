"""Rewriting a model so that its types are those of a plan."""

from __future__ import annotations

from onnx import NodeProto, TensorProto, helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope
from trtdeploy.graph.model import walk_graphs
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.passes.remove_redundant_casts import RemoveRedundantCastsPass
from trtdeploy.graph.schemas import find_operator_types
from trtdeploy.precision.plan import PrecisionPlan
from trtdeploy.precision.value_variants import TYPE_SUFFIX, ValueVariants

FP32_SLOTS: dict[str, frozenset[int]] = {"Resize": frozenset({1, 2}), "Upsample": frozenset({1})}
"""Operands that stay FP32 although the specification would allow narrow types."""

_FLOAT_ZERO = helper.make_tensor("value", TensorProto.FLOAT, [1], [0.0])
"""What ConstantOfShape repeats when it has no value (ONNX operator specification)."""


def apply_precision(index: ModelIndex, plan: PrecisionPlan, *, keep_io: bool) -> None:
    """Give every floating-point value the type its producer computes in, in place.

    Before (plan: MatMul fp16, Softmax fp32)::

        x:f32 -> MatMul(w:f32) -> h:f32 -> Softmax -> y:f32

    After::

        x:f32 -> Cast -> x_fp16 -> MatMul(w_fp16) -> h:f16 -> Cast -> h_fp32 -> Softmax -> y:f32

    A value is cast at most once per type, next to its producer. Constants are converted once per
    type, masks clamped where the plan says so. Graph inputs and outputs keep name, order and,
    unless ``keep_io`` is False, type; a constant that is itself an output always does.
    Ensures: no value_info is left (it would describe the old types), no Cast without effect, no
    unused constant.

    Args:
        index: The model that was planned; the index is of no use afterwards.
        plan: Decides each type; a recipe without a narrow type changes nothing.
        keep_io: Inputs and outputs keep their types.
    """
    model, low = index.model, plan.recipe.low
    if low is None:
        return
    had_casts = any(node.op_type == "Cast" for _, node in index.nodes())
    _Typing(index, plan, low).run(keep_io=keep_io)
    for graph in walk_graphs(model.graph):
        del graph.value_info[:]
    if had_casts:  # only Casts of the model itself can have lost their effect
        RemoveRedundantCastsPass()(model)
    DropUnusedConstantsPass()(model)


class _Typing:
    """One run; holds what is known about each value so far."""

    def __init__(self, index: ModelIndex, plan: PrecisionPlan, low: DType) -> None:
        self.index = index
        self.plan = plan
        self.low = low
        self.names = NameSource.for_graph(index.model.graph)
        self.variants = ValueVariants(index, self.names, plan.clamp_limits())

    def run(self, *, keep_io: bool) -> None:
        main = self.index.main
        if not keep_io:
            self._narrow_inputs(main)
        self._split_outputs(main, DType.FLOAT32 if keep_io else self.low)
        self._type_scope(main)
        # innermost first: rebuilding a graph copies its nodes, bodies included
        for scope in reversed(self.index.scopes):
            self._place_casts(scope)

    def _narrow_inputs(self, main: Scope) -> None:
        for value in main.graph.input:
            if main.types.get(value.name) is DType.FLOAT32:
                value.type.tensor_type.elem_type = self.low.code
                self.variants.set_type(main, value.name, self.low)

    def _split_outputs(self, main: Scope, wanted: DType) -> None:
        """Where an output is computed in another type, its name goes to a Cast behind it."""
        for value in main.graph.output:
            name, producer = value.name, main.producers.get(value.name)
            if main.types.get(name) is not DType.FLOAT32:
                continue
            if producer is None:
                value.type.tensor_type.elem_type = self.variants.type_of(main, name).code
                continue
            computed = self._result_type(producer, list(producer.output).index(name))
            if computed is not wanted:
                inner = self.names.make(f"{name}_{TYPE_SUFFIX[computed]}")
                main.rename(name, inner)
                self.variants.add_cast(main, inner, name, wanted)
            value.type.tensor_type.elem_type = wanted.code

    def _type_scope(self, scope: Scope) -> None:
        for node in scope.nodes:
            for slot, name in enumerate(node.input):
                if name and scope.type_of(name) is DType.FLOAT32:
                    wanted = self._operand_type(node, slot)
                    node.input[slot] = self.variants.find(scope, name, wanted)
            for slot, name in enumerate(node.output):
                if name and scope.type_of(name) is DType.FLOAT32:
                    self.variants.set_type(scope, name, self._result_type(node, slot))
            if self.plan.dtype_of(node.name) is self.low:
                self._narrow_attributes(node)
            for body in scope.bodies_of(node):
                self._type_body(body, self.plan.dtype_of(node.name))

    def _type_body(self, body: Scope, dtype: DType) -> None:
        """Type a nested graph whose results become ``dtype``.

        That is one type for all branches of an If, and FP32 for the state that Loop and Scan carry.
        """
        self._type_scope(body)
        for value in body.graph.output:
            if body.type_of(value.name) is DType.FLOAT32:
                value.name = self.variants.find(body, value.name, dtype)
                value.type.tensor_type.elem_type = dtype.code

    def _operand_type(self, node: NodeProto, slot: int) -> DType:
        types = find_operator_types(node, self.index.model.opset)
        if (
            self.plan.dtype_of(node.name) is self.low
            and slot not in FP32_SLOTS.get(node.op_type, ())
            and types is not None
            and types.input_allows(slot, self.low)
        ):
            return self.low
        return DType.FLOAT32

    def _result_type(self, node: NodeProto, slot: int) -> DType:
        if self.plan.dtype_of(node.name) is not self.low:
            return DType.FLOAT32
        types = find_operator_types(node, self.index.model.opset)
        narrow = types is not None and types.output_allows(slot, self.low)
        return self.low if narrow else DType.FLOAT32

    def _narrow_attributes(self, node: NodeProto) -> None:
        """Types written in attributes; other operators that have such are kept FP32 by rule."""
        if node.op_type == "Cast":
            for attribute in node.attribute:
                if attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                    attribute.i = self.low.code
        if node.op_type == "ConstantOfShape":
            given = next((a.t for a in node.attribute if a.name == "value"), _FLOAT_ZERO)
            if given.data_type == TensorProto.FLOAT:
                value = self.variants.convert_tensor(given, self.low, f"{node.name}.value")
                del node.attribute[:]
                node.attribute.append(helper.make_attribute("value", value))

    def _place_casts(self, scope: Scope) -> None:
        ordered: list[NodeProto] = []
        for value in scope.graph.input:
            ordered.extend(self.variants.casts_of(scope, value.name))
        for node in scope.nodes:
            ordered.append(node)
            for name in node.output:
                ordered.extend(self.variants.casts_of(scope, name))
        if len(ordered) != len(scope.nodes):
            del scope.graph.node[:]
            scope.graph.node.extend(ordered)
