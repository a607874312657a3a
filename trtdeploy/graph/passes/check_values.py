"""CheckValuesPass: everything that is read is defined somewhere."""

from __future__ import annotations

from onnx import GraphProto

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import OnnxModel, subgraphs_of


class CheckValuesPass:
    """Refuse graphs that read, or give back, a value that nobody computes; change nothing.

    Ensures: every name that a node reads belongs to a node, an input or a constant of its own
    graph or of one around it. (onnx 1.23 takes the process down on some graphs without that.)
    """

    def __call__(self, model: OnnxModel) -> None:
        """Check ``model``.

        Raises:
            ModelFileError: A value without origin.
        """
        problem = _find_problem(model.graph, [])
        if problem:
            raise ModelFileError(
                f"{model.path}: {problem}, which nothing in the file defines",
                hint="The file is damaged, or was cut out of a larger model; export it again.",
            )


def _find_problem(graph: GraphProto, around: list[set[str]]) -> str:
    defined = {value.name for value in graph.input}
    defined.update(tensor.name for tensor in graph.initializer)
    defined.update(sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        defined.update(node.output)
    scopes = [defined, *around]
    for node in graph.node:
        for name in node.input:
            if name and not any(name in scope for scope in scopes):
                return f"node {node.name!r} ({node.op_type}) reads {name!r}"
        for body in subgraphs_of(node):
            problem = _find_problem(body, scopes)
            if problem:
                return problem
    for value in graph.output:
        if not any(value.name in scope for scope in scopes):
            return f"graph {graph.name!r} has the output {value.name!r}"
    return ""
