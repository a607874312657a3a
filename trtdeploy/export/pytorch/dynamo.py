"""Export by ``torch.export`` and ``torch.onnx.export(dynamo=True)``: nothing is traced by luck."""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from trtdeploy.export.pytorch.autocast import ignore_autocast
from trtdeploy.export.pytorch.code_place import CodePlace, find_place_of_stack
from trtdeploy.export.pytorch.eval_mode import require_eval_graph
from trtdeploy.export.pytorch.failure import (
    ConversionFailedError,
    ShapeDecisions,
    explain_data_dependence,
    explain_fixed_axes,
    find_place_of_conversion,
    is_data_dependent,
    read_fixed_axes,
    shorten,
)
from trtdeploy.export.pytorch.flat_module import restore_state
from trtdeploy.export.pytorch.graph_file import ExportedGraph
from trtdeploy.export.pytorch.prepared import PreparedSource
from trtdeploy.export.pytorch.program import read_user_values
from trtdeploy.export.pytorch.quiet import quiet_frameworks

OLDEST_OPSET = 18
"""The exporter writes no older one; ``opset_lowering`` brings a graph down from here."""

_SHAPES_LOGGER = "torch.fx.experimental.symbolic_shapes"
_GUARD_EXPRESSION = 1


def export_by_dynamo(prepared: PreparedSource, path: Path) -> ExportedGraph:
    """Write the ONNX file.

    Raises:
        InputError: The model decides by values, fixes a size that was asked to vary, or computes
            as in training; another exporter would only hide that.
        Exception: Whatever else PyTorch raises: this exporter cannot do it.
    """
    with quiet_frameworks():
        program = prepared.source.program or _export_program(prepared)
        require_eval_graph(program)
        _write(program, prepared, path)
    graph = ExportedGraph(f"dynamo, PyTorch {torch.__version__}")
    graph.guards = list(getattr(program, "_guards_code", None) or [])
    graph.limits = _read_limits(prepared, program)
    return graph


def _write(program: torch.export.ExportedProgram, prepared: PreparedSource, path: Path) -> None:
    try:
        result = torch.onnx.export(
            program,
            dynamo=True,
            opset_version=max(prepared.opset, OLDEST_OPSET),
            input_names=list(prepared.source.named_tensors()),
            output_names=list(prepared.flat.output_names),
            verbose=False,
        )
    except torch.onnx.OnnxExporterError as error:
        raise ConversionFailedError(shorten(error), find_place_of_conversion(error)) from error
    result.save(path)


def _export_program(prepared: PreparedSource) -> torch.export.ExportedProgram:
    tensors = prepared.source.named_tensors()
    shapes = [
        dict.fromkeys(prepared.axes.dynamic.get(name, {}), torch.export.Dim.DYNAMIC)
        for name in tensors
    ]
    decisions = ShapeDecisions()
    try:
        with (
            torch.no_grad(),
            ignore_autocast(),
            restore_state(prepared.source.module),
            _listen(decisions, prepared.flat),
        ):
            return torch.export.export(
                prepared.flat,
                tuple(tensor.clone() for tensor in tensors.values()),
                dynamic_shapes=(tuple(shapes),),
                strict=False,
            )
    except Exception as error:
        if is_data_dependent(error):
            raise explain_data_dependence(error, prepared.flat) from error
        fixed = read_fixed_axes(str(error))
        if fixed:
            _require_no_loop(prepared, [decisions.find(entry.size) for entry in fixed])
            names = list(tensors)
            raise explain_fixed_axes(fixed, names, prepared.axes.dynamic, decisions) from error
        raise


def _require_no_loop(prepared: PreparedSource, places: list[CodePlace | None]) -> None:
    """Leave to TorchScript what it writes as one operator, and dynamo unrolls over its time."""
    recurrent = [
        place
        for place in places
        if place
        and isinstance(prepared.source.module.get_submodule(place.module), torch.nn.RNNBase)
    ]
    if places and len(recurrent) == len(places):
        raise ConversionFailedError(
            "it unrolls a recurrent module over time, and so fixes how long inputs are",
            recurrent[0],
        )


class _GuardListener(logging.Handler):
    """Notes where code was when the tracer decided a size; the log line carries the decision."""

    def __init__(self, decisions: ShapeDecisions, model: torch.nn.Module) -> None:
        super().__init__(logging.INFO)
        self._decisions, self._model = decisions, model

    def emit(self, record: logging.LogRecord) -> None:
        if "[guard added]" not in str(record.msg) or not isinstance(record.args, tuple):
            return
        place = find_place_of_stack(inspect.currentframe(), self._model)
        self._decisions.add(str(record.args[_GUARD_EXPRESSION]), place)


@contextlib.contextmanager
def _listen(decisions: ShapeDecisions, model: torch.nn.Module) -> Iterator[None]:
    logger = logging.getLogger(_SHAPES_LOGGER)
    before = (logger.level, logger.propagate, list(logger.handlers))
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.handlers = [_GuardListener(decisions, model)]
    try:
        yield
    finally:
        logger.level, logger.propagate, logger.handlers = before
        logger.setLevel(before[0])


def _read_limits(prepared: PreparedSource, program: torch.export.ExportedProgram) -> dict[str, int]:
    """Return upper bounds that the program states for symbols, e.g. a table of positions."""
    limits: dict[str, int] = {}
    names = list(prepared.source.named_tensors())
    for name, value in zip(names, read_user_values(program, len(names)), strict=True):
        for axis, symbol in prepared.axes.dynamic.get(name, {}).items():
            upper = _find_upper_bound(program, value.shape[axis])
            if upper is not None:
                limits[symbol] = min(upper, limits.get(symbol, upper))
    return limits


def _find_upper_bound(program: torch.export.ExportedProgram, size: Any) -> int | None:
    bounds: Any = None
    if isinstance(size, torch.SymInt):
        bounds = program.range_constraints.get(size.node.expr)
    upper = getattr(bounds, "upper", None)
    if upper is None or not getattr(upper, "is_Integer", False):
        return None
    return int(upper)
