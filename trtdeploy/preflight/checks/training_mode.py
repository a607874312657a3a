"""FindTrainingModeCheck: nodes left in training mode by the export."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.graph.attributes import integer_of
from trtdeploy.preflight.context import CheckContext, input_name
from trtdeploy.preflight.finding import Affects, Finding, FindingKind, Severity
from trtdeploy.preflight.prepared_model import CheckedNode

TRAINING_MODE = FindingKind("training-mode", Severity.BLOCKER, Affects.BOTH)

_DROPOUT_SWITCH = 2
_FIRST_WITHOUT_IS_TEST = 7
_REMEDY = "Call model.eval() before exporting (PyTorch: torch.onnx.export(..., training=EVAL))."


class FindTrainingModeCheck:
    """Find BatchNormalization and Dropout that behave as in training.

    The baseline then gives other results on every run, and TensorRT refuses the node.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node."""
        for checked in context.standard_nodes():
            if checked.node.op_type not in ("BatchNormalization", "Dropout"):
                continue
            if context.prepared.model.opset < _FIRST_WITHOUT_IS_TEST:
                yield from _check_is_test(checked)
            elif checked.node.op_type == "Dropout":
                yield from _check_dropout(context, checked)
            else:
                yield from _check_normalization(checked)


def _check_normalization(checked: CheckedNode) -> Iterator[Finding]:
    further = [name for name in checked.node.output[1:] if name]
    if integer_of(checked.node, "training_mode", 0):
        yield TRAINING_MODE.at(
            checked.place,
            "training_mode is 1: it normalises with the statistics of the batch at hand, not with "
            "the trained ones",
            _REMEDY,
        )
    elif further:
        yield TRAINING_MODE.at(
            checked.place,
            f"its outputs {', '.join(map(repr, further))} are statistics for training; TensorRT "
            "imports the first output only",
            _REMEDY,
            affects=Affects.ENGINE,
        )


def _check_is_test(checked: CheckedNode) -> Iterator[Finding]:
    given = any(attribute.name == "is_test" for attribute in checked.node.attribute)
    if integer_of(checked.node, "is_test", 0):
        return
    yield TRAINING_MODE.at(
        checked.place,
        "is_test is 0, which means training mode" + ("" if given else " (its default)"),
        _REMEDY,
        severity=Severity.BLOCKER if given else Severity.HAZARD,
    )


def _check_dropout(context: CheckContext, checked: CheckedNode) -> Iterator[Finding]:
    name = input_name(checked.node, _DROPOUT_SWITCH)
    if not name:
        return
    values = context.constant_of(checked.scope, name)
    if values is None:
        yield TRAINING_MODE.at(
            checked.place,
            f"whether it drops values is decided at run time by {name!r}; TensorRT needs a "
            "constant",
            _REMEDY,
            affects=Affects.ENGINE,
        )
    elif values.size and bool(values.ravel()[0]):
        yield TRAINING_MODE.at(
            checked.place, "training_mode is true: it zeroes random values on every run", _REMEDY
        )
