"""StripTrainingPass: what behaves as in training behaves as in inference."""

from __future__ import annotations

from onnx import NodeProto

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.attributes import integer_of
from trtdeploy.graph.index import ModelIndex, Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, OnnxModel
from trtdeploy.graph.passes.remove_identities import RemoveIdentitiesPass


class StripTrainingPass:
    """Put Dropout and BatchNormalization into their inference form, in every graph.

    Before: ``y, mean, var = BatchNormalization(x, ..., training_mode=1)``;
    ``z = Dropout(y, ratio, training=True)``.
    After: ``y = BatchNormalization(x, ...)`` with the running statistics that the file carries;
    readers of ``z`` read ``y``.
    Ensures: no Dropout, and no BatchNormalization with more than one result. The results are other
    ones than before: those of ``model.eval()``.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place; its opset must be 7 or higher.

        Raises:
            ModelFileError: Something reads what only training computes: the mask of a Dropout, or
                the statistics of a BatchNormalization.
        """
        index = build_index(model)
        for scope, node in index.nodes():
            if node.domain not in ONNX_DOMAINS:
                continue
            if node.op_type == "Dropout":
                _strip(index, scope, node)
                node.op_type = "Identity"
                del node.input[1:]
                del node.attribute[:]
                model.changes.append(f"Dropout {node.name!r} removed")
            elif node.op_type == "BatchNormalization" and _is_training(node):
                _strip(index, scope, node)
                kept = [a for a in node.attribute if a.name != "training_mode"]
                del node.attribute[:]
                node.attribute.extend(kept)
                model.changes.append(
                    f"BatchNormalization {node.name!r} uses the trained statistics, not those of "
                    "the batch at hand"
                )
        RemoveIdentitiesPass()(model)


def _is_training(node: NodeProto) -> bool:
    return bool(integer_of(node, "training_mode", 0)) or len(node.output) > 1


def _strip(index: ModelIndex, scope: Scope, node: NodeProto) -> None:
    """Take the results away that only training computes."""
    for name in node.output[1:]:
        if name and (scope.uses_of(name) or name in scope.outputs):
            raise ModelFileError(
                f"{index.model.path}: node {node.name!r} ({node.op_type}) is in training mode, and "
                f"its result {name!r}, which only training has, is read",
                hint="Call model.eval() before exporting.",
            )
    del node.output[1:]
