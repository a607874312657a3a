"""DropInitializerInputsPass: weights are no longer listed as inputs."""

from __future__ import annotations

from trtdeploy.graph.model import OnnxModel

_FIRST_IR_WITHOUT = 4


class DropInitializerInputsPass:
    """Remove from ``graph.input`` every name that is an initializer.

    IR version 3 listed weights among the inputs; from IR 4 on such an entry means "default value
    that a caller may override", which no TensorRT engine offers.
    Ensures: ``graph.input`` holds what a caller feeds, and nothing else.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        constants = {tensor.name for tensor in model.graph.initializer}
        kept = [value for value in model.graph.input if value.name not in constants]
        dropped = len(model.graph.input) - len(kept)
        if not dropped:
            return
        del model.graph.input[:]
        model.graph.input.extend(kept)
        model.proto.ir_version = max(model.proto.ir_version, _FIRST_IR_WITHOUT)
        model.changes.append(f"{dropped} weights were listed as inputs; they are constants now")
