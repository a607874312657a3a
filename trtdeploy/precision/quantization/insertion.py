"""Writing a plan's Q/DQ nodes and 8-bit weights into a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.index import ModelIndex, build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.naming import NameSource
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.precision.operators import DEQUANTIZE, QUANTIZE
from trtdeploy.precision.quantization.plan import QuantizationPlan, QuantizedWeight
from trtdeploy.precision.quantization.scale_resolution import resolve_scales
from trtdeploy.precision.quantization.scales import compute_scales
from trtdeploy.precision.quantization.weights import measure_weight_amax, store_quantized


def insert_quantization(
    model: OnnxModel, plan: QuantizationPlan, amax: Mapping[str, float]
) -> QuantizationPlan:
    """Put Q/DQ pairs on the operands of a plan, and store its weights in 8 bits.

    Before::

        x -> Conv(w, b) -> y

    After::

        x -> QuantizeLinear(s, 0) -> DequantizeLinear(s, 0) -> Conv(dw, b) -> y
        dw = DequantizeLinear(w_int8, s_per_channel, 0, axis)

    A value has one pair per scale, shared by all who read it so; others read the value itself.
    Zero points are always written, and always 0; FP8 saturates, as QuantizeLinear does by default.
    Ensures: every scale is positive, finite, and a number of ``plan.scale_dtype``. Names of values,
    nodes and outputs stay; new ones are called after what they quantize.

    Args:
        model: The model that was planned; it is rewritten in place.
        plan: Where pairs and 8-bit weights go.
        amax: Largest magnitude kept of each value in ``plan.measured``.

    Returns:
        The plan with its scales resolved (see ``resolve_scales``).

    Raises:
        InputError: A value has no amax: the calibration belongs to another model.
    """
    index = build_index(model)
    resolved = resolve_scales(index, plan, amax)
    if not resolved.is_empty:
        _Insertion(index, resolved, amax).run()
        DropUnusedConstantsPass()(model)
    return resolved


class _Insertion:
    """One run: makes each constant and each pair once."""

    def __init__(
        self, index: ModelIndex, plan: QuantizationPlan, amax: Mapping[str, float]
    ) -> None:
        self._index = index
        self._model = index.model
        self._plan = plan
        self._amax = amax
        self._names = NameSource.for_graph(index.model.graph)
        self._readers = {node.name: node for node in index.main.nodes}
        self._behind: dict[str, list[NodeProto]] = defaultdict(list)
        self._before: dict[str, list[NodeProto]] = defaultdict(list)
        self._scales: dict[tuple[str, QuantizedType], tuple[str, str]] = {}
        self._pairs: dict[tuple[str, str, QuantizedType], str] = {}
        self._stored: dict[tuple[str, int | None, QuantizedType], list[str]] = {}

    def run(self) -> None:
        for operand in self._plan.operands:
            read = self._find_pair(operand.tensor, operand.group, operand.kind)
            self._readers[operand.node].input[operand.slot] = read
        for weight in self._plan.weights:
            self._readers[weight.node].input[weight.slot] = self._dequantize(weight)
        self._place_nodes()

    def _find_pair(self, tensor: str, group: str, kind: QuantizedType) -> str:
        """Return ``tensor`` behind a pair with the scale of ``group``."""
        key = tensor, group, kind
        if key not in self._pairs:
            constants = self._find_scale(group, kind)
            quantized = self._names.make(f"{tensor}_quantized")
            result = self._names.make(f"{tensor}_dequantized")
            self._behind[tensor] += [
                self._make(QUANTIZE, f"{tensor}_quantize", [tensor, *constants], quantized),
                self._make(DEQUANTIZE, f"{tensor}_dequantize", [quantized, *constants], result),
            ]
            self._pairs[key] = result
        return self._pairs[key]

    def _find_scale(self, group: str, kind: QuantizedType) -> tuple[str, str]:
        if (group, kind) not in self._scales:
            amax = np.asarray(self._amax[group], np.float64)
            scale = compute_scales(amax, kind, self._plan.scale_dtype)
            self._scales[group, kind] = self._add_scale(group, scale.reshape(()), kind)
        return self._scales[group, kind]

    def _dequantize(self, weight: QuantizedWeight) -> str:
        """Return the weight behind a DequantizeLinear of this layer's own."""
        key = weight.tensor, weight.axis, weight.kind
        if key not in self._stored:
            self._stored[key] = self._store(weight)
        result = self._names.make(f"{weight.tensor}_dequantized")
        node = self._make(DEQUANTIZE, f"{weight.tensor}_dequantize", self._stored[key], result)
        if weight.axis is not None:
            node.attribute.append(helper.make_attribute("axis", weight.axis))
        self._before[weight.node].append(node)
        return result

    def _store(self, weight: QuantizedWeight) -> list[str]:
        """Store a weight in 8 bits; return the names of its values, scales and zero points."""
        tensor = self._index.main.initializers[weight.tensor]
        amax = measure_weight_amax(self._model, tensor, weight.axis)
        scales = compute_scales(amax, weight.kind, self._plan.scale_dtype)
        name = self._names.make(f"{weight.tensor}_{weight.kind.name}")
        store_quantized(self._model, tensor, name, scales, weight.axis, weight.kind)
        shape = () if weight.axis is None else (-1,)
        return [name, *self._add_scale(name, scales.reshape(shape), weight.kind)]

    def _add_scale(
        self, name: str, scale: npt.NDArray[np.float32], kind: QuantizedType
    ) -> tuple[str, str]:
        """Add the constants scale and zero point; 0 has the same bits in every 8-bit type."""
        scale_name = self._names.make(f"{name}_scale")
        zero_name = self._names.make(f"{name}_zero_point")
        zero = TensorProto(
            name=zero_name, data_type=kind.dtype.code, dims=scale.shape, raw_data=bytes(scale.size)
        )
        self._model.graph.initializer.extend([numpy_helper.from_array(scale, scale_name), zero])
        return scale_name, zero_name

    def _make(self, op_type: str, name: str, operands: list[str], result: str) -> NodeProto:
        return helper.make_node(op_type, operands, [result], name=self._names.make(name))

    def _place_nodes(self) -> None:
        graph = self._model.graph
        ordered = [node for value in graph.input for node in self._behind[value.name]]
        for node in self._index.main.nodes:
            ordered += [*self._before[node.name], node]
            for name in node.output:
                ordered += self._behind[name]
        del graph.node[:]
        graph.node.extend(ordered)
