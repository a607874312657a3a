"""CheckNodesPass: every standard node has the form its operator demands."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.onnx_defects import find_fatal_attribute
from trtdeploy.graph.schemas import find_schema


class CheckNodesPass:
    """Refuse nodes with too few or too many inputs or outputs; change nothing.

    Ensures: later code may read the operands that the specification calls required, and no
    attribute is left that takes onnx down.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Check ``model``.

        Raises:
            ModelFileError: A node that no runtime accepts.
        """
        for node in walk_nodes(model.graph):
            problem = _find_problem(node, model.opset)
            if problem:
                raise ModelFileError(
                    f"{model.path}: node {node.name!r} ({node.op_type}): {problem}",
                    hint="The file is damaged, or its opset is wrong; export it again.",
                )


def _find_problem(node: NodeProto, opset: int) -> str:
    schema = find_schema(node, opset)
    if schema is None:
        return ""
    inputs, outputs = len(node.input), len(node.output)
    if not schema.min_input <= inputs <= schema.max_input:
        return f"has {inputs} inputs; {schema.min_input} to {schema.max_input} are possible"
    if not schema.min_output <= outputs <= schema.max_output:
        return f"has {outputs} outputs; {schema.min_output} to {schema.max_output} are possible"
    return find_fatal_attribute(node)
