"""InlineFunctionsPass: model-local functions become plain nodes."""

from __future__ import annotations

from onnx import ModelProto, inliner, shape_inference

from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.model import ONNX_ERRORS, OnnxModel


class InlineFunctionsPass:
    """Replace calls of model-local functions by their bodies.

    Before: ``y = local.Gelu(x)`` plus a function ``Gelu``. After: the nodes of its body.
    Ensures: ``model.proto.functions`` is empty.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place.

        Raises:
            ModelFileError: A function calls itself, or is written for another opset and cannot
                be converted.
        """
        if not model.proto.functions:
            return
        count = len(model.proto.functions)
        try:
            inlined = _inline(model.proto)
        except ONNX_ERRORS as error:
            raise ModelFileError(
                f"{model.path}: its model-local functions cannot be inlined: {error}",
                hint="Export the model again with plain operators.",
            ) from error
        del inlined.functions[:]  # what is left was never called
        model.proto.CopyFrom(inlined)
        model.changes.append(f"{count} model-local functions inlined")


def _inline(proto: ModelProto) -> ModelProto:
    inlined = inliner.inline_local_functions(proto)
    if inlined.functions:  # written for another opset; their conversion needs types
        typed = shape_inference.infer_shapes(inlined)
        inlined = inliner.inline_local_functions(typed, convert_version=True)
    return inlined
