"""ClearAnonymousDimsPass: a dimension called "?" or -1 has no name."""

from __future__ import annotations

from onnx import TypeProto

from trtdeploy.graph.model import ANONYMOUS_DIMS, OnnxModel, walk_graphs


class ClearAnonymousDimsPass:
    """Remove placeholder names and negative sizes from dimensions.

    Before: ``x: [-1, 3, "?", "?"]``. After: three unnamed dimensions. TensorRT ties dimensions of
    one name together and would demand that height equals width.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        for graph in walk_graphs(model.graph):
            for values in (graph.input, graph.output, graph.value_info):
                for value in values:
                    _clear(value.type)


def _clear(value_type: TypeProto) -> None:
    if not value_type.HasField("tensor_type"):
        return
    for dim in value_type.tensor_type.shape.dim:
        if (dim.HasField("dim_value") and dim.dim_value < 0) or (
            dim.HasField("dim_param") and dim.dim_param in ANONYMOUS_DIMS
        ):
            dim.Clear()
