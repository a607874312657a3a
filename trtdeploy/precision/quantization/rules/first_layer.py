"""KeepFirstLayerRule: layers that read the model's input."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import NodeProto

from trtdeploy.core.dtypes import DType
from trtdeploy.precision.neighbours import MOVERS
from trtdeploy.precision.quantization.rules.flow import data_of, find_reached
from trtdeploy.precision.quantization.rules.rule import Kept, LayerContext

_RAW_TYPES = frozenset({DType.FLOAT32, DType.FLOAT16, DType.UINT8, DType.INT8})
_PREPROCESSING = MOVERS | {
    "Add", "Sub", "Mul", "Div", "Neg", "Min", "Max", "Clip", "BatchNormalization", "Resize",
}  # fmt: skip


class KeepFirstLayerRule:
    """Keep layers that read raw data: an input behind nothing but arithmetic and moves.

    Everything behind them suffers from what they lose, and with the three channels of an image
    they gain nothing. Off in small models.
    """

    is_binding = False

    def find(self, context: LayerContext) -> Iterator[Kept]:
        """Yield the first layers."""
        if not context.has_many_layers:
            return
        main = context.index.main
        seeds = [name for name in main.inputs if main.types.get(name) in _RAW_TYPES]

        def carries(node: NodeProto, found: frozenset[str]) -> bool:
            return node.op_type in _PREPROCESSING and found >= set(_float_data(context, node))

        raw = find_reached(context.index, seeds, carries)
        for name, layer in context.layers.items():
            if layer.weight is not None and raw.issuperset(layer.data):
                yield name, "a first layer: it reads the input of the model"


def _float_data(context: LayerContext, node: NodeProto) -> Iterator[str]:
    main = context.index.main
    return (name for name in data_of(main, node) if main.type_of(name) in _RAW_TYPES)
