"""Emulation: an FP32 model that rounds what a typed model stores, for a CPU without such types."""

from __future__ import annotations

from collections import defaultdict

from onnx import NodeProto, helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import OnnxModel, walk_graphs
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.remove_redundant_casts import RemoveRedundantCastsPass
from trtdeploy.precision.emulation_limits import refuse_untraceable_values
from trtdeploy.precision.exact_results import is_exact
from trtdeploy.precision.operator_layers import split_operators
from trtdeploy.precision.operators import DEQUANTIZE
from trtdeploy.precision.value_variants import TYPE_SUFFIX
from trtdeploy.precision.widening import (
    NARROW,
    is_cast,
    widen_attributes,
    widen_tensor,
    widen_type,
)


def emulate_model(model: OnnxModel) -> OnnxModel:
    """Return a model that computes in FP32 and stores what ``model`` stores.

    Before::

        x:f32 -> Cast -> x_fp16 -> MatMul(w_fp16) -> h:f16 -> Relu -> r:f16 -> Cast -> y:f32

    After (all FP32 but the values between the two Casts of a pair)::

        x -> Cast -> Cast -> x_fp16 -> MatMul(w_fp16) -> h_raw -> Cast -> Cast -> h -> Relu -> y

    ONNX Runtime on the CPU widens FP16 nodes in groups, which hides rounding and overflow, and has
    no BF16 kernels. A pair of Casts rounds to nearest even, keeps subnormals and overflows to
    infinity, bit for bit as numpy does (measured on ONNX Runtime 1.22 and 1.32, every
    optimisation level). So each FP16 or BF16 result passes through a pair, except where rounding
    cannot change it (``is_exact``). What a device does inside one layer is not emulated: sums are
    FP32 there too, in another order. An operator that becomes several layers is split first.

    Constants become FP32 by value. Inputs and outputs keep name, order and type, with one Cast at
    the border. Q/DQ nodes stay, so 8-bit values are real; only their narrow operands and results
    are widened like any other. What DequantizeLinear computes is not rounded: a device fuses it
    into the layer that reads it, which multiplies the 8-bit numbers themselves. Intermediate
    values keep their names and carry what the device would store.

    Args:
        model: A strongly typed model, from ``apply_recipe`` or from a file; it is not changed.

    Returns:
        A normalised model; large weights stay on the disk and are widened while they are saved.

    Raises:
        NotPossibleError: The type of a value next to a narrow one is not known, a narrow value is
            reinterpreted bit by bit, or a sequence of narrow tensors is an input or output.
        ModelFileError: The graph is not one that any runtime could execute.
    """
    emulated = normalize_model(model)
    index = build_index(emulated)
    if split_operators(index):
        index = build_index(emulated)
    refuse_untraceable_values(index)
    _Emulation(index).run()
    for graph in walk_graphs(emulated.graph):
        del graph.value_info[:]
    RemoveRedundantCastsPass()(emulated)  # what widened a value before is without effect now
    return emulated


class _Emulation:
    """One run: widens every type, and remembers the Casts to place behind each node."""

    def __init__(self, index: ModelIndex) -> None:
        self._index = index
        self._names = NameSource.for_graph(index.model.graph)
        self._casts: dict[int, list[NodeProto]] = defaultdict(list)

    def run(self) -> None:
        main = self._index.main
        for name in sorted(main.inputs):
            if main.types.get(name) in NARROW:
                self._widen_readers(main, name, None)
        for scope in self._index.scopes:
            self._widen_constants(scope)
            for node in scope.nodes:
                self._emulate_node(scope, node)
            if scope is not main:
                for value in (*scope.graph.input, *scope.graph.output):
                    widen_type(value.type)
        # innermost first: rebuilding a graph copies its nodes, bodies included
        for scope in reversed(self._index.scopes):
            self._place_casts(scope)

    def _widen_constants(self, scope: Scope) -> None:
        weights = self._index.model.weights if scope is self._index.main else {}
        for name, tensor in scope.initializers.items():
            if scope.types[name] not in NARROW:
                continue
            if self._is_result(scope, name):
                self._widen_readers(scope, name, None)
            elif name in weights:
                weights[name] = weights[name].widen()
                tensor.data_type = DType.FLOAT32.code
            else:
                widen_tensor(tensor)

    def _emulate_node(self, scope: Scope, node: NodeProto) -> None:
        for name in list(node.output):
            dtype = scope.type_of(name) if name else DType.UNDEFINED
            if dtype not in NARROW:
                continue
            if not is_exact(node) and node.op_type != DEQUANTIZE:
                self._round(scope, node, name, dtype)
            elif self._is_result(scope, name):
                wide = self._names.make(f"{name}_fp32")
                scope.rename(name, wide)
                self._add_cast(node, wide, name, dtype)
        widen_attributes(node)

    def _round(self, scope: Scope, node: NodeProto, name: str, dtype: DType) -> None:
        """Put a pair of Casts between ``node`` and the readers of ``name``.

        A Cast to the narrow type is the first of the pair itself; for a result of the model it
        is the border.
        """
        first = node
        if not is_cast(node):
            raw = self._names.make(f"{name}_raw")
            _replace_output(node, name, raw)
            first = self._add_cast(node, raw, name, dtype)
        if self._is_result(scope, name):
            self._widen_readers(scope, name, node)
            return
        narrow = self._names.make(f"{name}_{TYPE_SUFFIX[dtype]}")
        _replace_output(first, name, narrow)
        self._add_cast(node, narrow, name, DType.FLOAT32)

    def _widen_readers(self, scope: Scope, name: str, node: NodeProto | None) -> None:
        """Let the readers of a value that stays narrow read its Cast, placed behind ``node``."""
        uses = scope.uses.get(name)
        if not uses:
            return
        wide = self._names.make(f"{name}_fp32")
        for use in uses:
            use.node.input[use.slot] = wide
        self._add_cast(node, name, wide, DType.FLOAT32)

    def _is_result(self, scope: Scope, name: str) -> bool:
        return scope is self._index.main and name in scope.outputs

    def _add_cast(
        self, node: NodeProto | None, source: str, target: str, dtype: DType
    ) -> NodeProto:
        """Make a Cast behind ``node``, or at the head of the main graph."""
        name = self._names.make(f"{target}_cast")
        cast = helper.make_node("Cast", [source], [target], name=name, to=dtype.code)
        self._casts[id(node) if node is not None else 0].append(cast)
        return cast

    def _place_casts(self, scope: Scope) -> None:
        ordered = list(self._casts[0]) if scope is self._index.main else []
        for node in scope.nodes:
            ordered += [node, *self._casts.get(id(node), ())]
        del scope.graph.node[:]
        scope.graph.node.extend(ordered)


def _replace_output(node: NodeProto, old: str, new: str) -> None:
    node.output[list(node.output).index(old)] = new
