"""SetInputAxesPass: axes of inputs become dynamic, or get one size."""

from __future__ import annotations

from collections.abc import Mapping

from trtdeploy.graph.model import OnnxModel, walk_graphs


class SetInputAxesPass:
    """Write other sizes into the declarations of inputs.

    Before: ``images`` 1x3x640x640. After ``SetInputAxesPass({"images": {0: "batch"}})``:
    batchx3x640x640, and no declared shape inside the graph that says otherwise.
    Ensures: the axes are as given; inner values declare no shapes. Whether the nodes still fit
    together is another question.

    Args:
        axes: Name of the dynamic axis, or its only size, by axis by input. Every input and axis
            must exist.
    """

    def __init__(self, axes: Mapping[str, Mapping[int, int | str]]) -> None:
        self.axes = axes

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        for value in model.graph.input:
            for axis, wanted in self.axes.get(value.name, {}).items():
                dim = value.type.tensor_type.shape.dim[axis]
                before = dim.dim_param or dim.dim_value
                if before == wanted:
                    continue
                dim.Clear()
                if isinstance(wanted, str):
                    dim.dim_param = wanted
                    model.changes.append(
                        f"input {value.name!r} axis {axis} is dynamic: {wanted!r}, was "
                        f"{before or 'unnamed'}"
                    )
                else:
                    dim.dim_value = wanted
                    model.changes.append(
                        f"input {value.name!r} axis {axis} is fixed to {wanted}, was "
                        f"{before or 'unnamed'}"
                    )
        for graph in walk_graphs(model.graph):
            del graph.value_info[:]
