"""FuseBatchNormalizationPass: BatchNormalization becomes part of the layer before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from trtdeploy.core.dtypes import DType
from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import ModelIndex, build_index, infer_types
from trtdeploy.graph.layer_operands import (
    BIAS_SLOT,
    WEIGHT_SLOT,
    Channels,
    LayerWeight,
    add_initializer,
    find_layer_weight,
    is_read_once,
    read_bias,
    store_bias,
    take_over_result,
)
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.quantized_weights import ChannelFactors, scale_values

_FIRST_INFERENCE_OPSET = 7
"""Before, BatchNormalization trained unless an attribute said otherwise."""
_MATRIX_RANK = 2
_PARAMETERS = 4
_LARGEST_FP32 = float(np.finfo(np.float32).max)


class FuseBatchNormalizationPass:
    """Fold ``y = BatchNormalization(layer(x))`` into weight and bias, in the main graph.

    Before::

        x -> Conv(w, b) -> c -> BatchNormalization(scale, shift, mean, var) -> y

    After, with ``f = scale / sqrt(var + epsilon)`` per output channel (ONNX specification)::

        x -> Conv(w * f, (b - mean) * f + shift) -> y

    So too for ConvTranspose with any number of groups, Gemm, and MatMul of matrices, whose bias is
    the constant of an Add behind it. 8-bit scales have to fit the weight that a device really
    multiplies with. Computed in FP64; weights on the disk stay there and are multiplied while they
    are read. Left alone: training mode, computed parameters, types other than FP32, and layers
    whose result somebody else reads too.
    Ensures: nodes keep their names, and results theirs. ``model.changes`` says how many were
    folded.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place; it must be normalised."""
        if not any(map(_is_batch_normalization, model.graph.node)):
            return
        fusion = _Fusion(build_index(model))
        nodes = [node for node in fusion.index.main.nodes if not fusion.fuse(node)]
        if not fusion.count:
            return
        del model.graph.node[:]
        model.graph.node.extend(nodes)
        DropUnusedConstantsPass()(model)
        plural = "node" if fusion.count == 1 else "nodes"
        model.changes.append(
            f"{fusion.count} BatchNormalization {plural} folded into the layers before"
        )


@dataclass(frozen=True)
class _Affine:
    """``y = x * factor + offset``, per channel."""

    factor: Channels
    offset: Channels


@dataclass(frozen=True)
class _Target:
    """What a normalisation is folded into; ``bias_node`` is None when a bias has to be made."""

    layer: NodeProto
    weight: LayerWeight
    last: NodeProto
    bias_node: NodeProto | None
    bias_slot: int


class _Fusion:
    """One run of the pass."""

    def __init__(self, index: ModelIndex) -> None:
        self.index = index
        self.count = 0
        self._names = NameSource.for_graph(index.model.graph)
        self._ranks: dict[str, int] | None = None

    def fuse(self, node: NodeProto) -> bool:
        """Fold ``node`` if that is possible; True when it is to be removed."""
        affine = _read_affine(self.index, node) if _is_batch_normalization(node) else None
        target = self._find_target(node.input[0]) if affine is not None else None
        if affine is None or target is None or affine.factor.size != target.weight.outputs:
            return False
        bias = self._combine_bias(target, affine)
        if bias is None or not self._scale_weight(target, affine.factor):
            return False
        self.count += 1
        if target.bias_node is None:
            self._become_add(node, bias)
            return False
        store_bias(self.index, self._names, target.bias_node, target.bias_slot, bias)
        if target.layer.op_type == "Gemm":
            _remove_attribute(target.layer, "beta")
        take_over_result(self.index.main, target.last, node)
        return True

    def _find_target(self, name: str) -> _Target | None:
        main = self.index.main
        last = main.producers.get(name)
        if last is None or not is_read_once(main, name):
            return None
        if last.op_type == "Add" and last.domain in ONNX_DOMAINS:
            return self._find_matmul_behind(last)
        weight = find_layer_weight(main, last)
        if weight is None:
            return None
        if last.op_type == "MatMul":
            return _Target(last, weight, last, None, 0) if self._is_matrix(name) else None
        return _Target(last, weight, last, last, BIAS_SLOT)

    def _find_matmul_behind(self, add: NodeProto) -> _Target | None:
        main = self.index.main
        for slot, other in ((0, 1), (1, 0)):
            product = add.input[slot]
            layer = main.producers.get(product)
            if layer is None or layer.op_type != "MatMul":
                continue
            weight = find_layer_weight(main, layer)
            if weight is not None and is_read_once(main, product) and self._is_matrix(product):
                return _Target(layer, weight, add, add, other)
        return None

    def _is_matrix(self, name: str) -> bool:
        """True when the channels of a value, its second axis, are the columns of a product."""
        if self._ranks is None:
            inferred = infer_types(self.index.model.proto).graph
            self._ranks = {
                value.name: len(value.type.tensor_type.shape.dim)
                for value in (*inferred.value_info, *inferred.output)
                if value.type.tensor_type.HasField("shape")
            }
        return self._ranks.get(name) == _MATRIX_RANK

    def _combine_bias(self, target: _Target, affine: _Affine) -> Channels | None:
        outputs = target.weight.outputs
        bias = np.zeros(outputs)
        if target.bias_node is not None:
            found = read_bias(self.index, target.bias_node, target.bias_slot, outputs)
            if found is None:
                return None
            beta = value_of(target.layer, "beta") if target.layer.op_type == "Gemm" else None
            bias = found * (beta if isinstance(beta, float) else 1.0)
        combined: Channels = bias * affine.factor + affine.offset
        return combined if (np.abs(combined) <= _LARGEST_FP32).all() else None

    def _scale_weight(self, target: _Target, factor: Channels) -> bool:
        """Give the layer a scaled weight of its own; False when the stored one cannot be scaled."""
        model, weight = self.index.model, target.weight
        factors = ChannelFactors(factor[weight.channels], weight.layout)
        name = self._names.make(f"{weight.tensor.name}_folded")
        scaled = TensorProto(dims=weight.tensor.dims, data_type=DType.FLOAT32.code, name=name)
        stored = model.find_stored(weight.tensor)
        if stored is None:
            values = numpy_helper.to_array(weight.tensor).reshape(-1)
            scaled.raw_data = scale_values(values, factors, 0).tobytes()
        else:
            streamed = stored.scale(factors)
            if streamed is None:
                return False
            model.weights[scaled.name] = streamed
        target.layer.input[WEIGHT_SLOT] = scaled.name
        add_initializer(self.index, scaled)
        return True

    def _become_add(self, node: NodeProto, bias: Channels) -> None:
        add = helper.make_node("Add", [node.input[0]], [node.output[0]], name=node.name)
        node.CopyFrom(add)
        store_bias(self.index, self._names, node, 1, bias)


def _is_batch_normalization(node: NodeProto) -> bool:
    return node.op_type == "BatchNormalization" and node.domain in ONNX_DOMAINS


def _remove_attribute(node: NodeProto, name: str) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != name]
    del node.attribute[:]
    node.attribute.extend(kept)


def _read_affine(index: ModelIndex, node: NodeProto) -> _Affine | None:
    """Return what an inference BatchNormalization with constant parameters computes."""
    training = integer_of(node, "training_mode", 0) or not integer_of(node, "spatial", 1)
    if training or index.model.opset < _FIRST_INFERENCE_OPSET or any(node.output[1:]):
        return None
    read = [read_constant(index.model, index.main, name) for name in node.input[1:]]
    parameters = [values.astype(np.float64) for values in read if values is not None]
    shapes = {values.shape for values in parameters}
    if len(parameters) != _PARAMETERS or len(shapes) != 1 or parameters[0].ndim != 1:
        return None
    scale, shift, mean, variance = parameters
    epsilon = value_of(node, "epsilon")
    with np.errstate(all="ignore"):
        factor = scale / np.sqrt(variance + (epsilon if isinstance(epsilon, float) else 1e-5))
        offset = shift - mean * factor
    usable = np.isfinite(factor).all() and np.isfinite(offset).all()
    return _Affine(factor, offset) if usable else None
