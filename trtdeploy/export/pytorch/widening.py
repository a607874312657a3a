"""Models trained in low precision become FP32 modules with the very values they were trained to."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.node import map_aggregate
from torch.utils._pytree import tree_leaves, tree_map

from trtdeploy.export.pytorch.source import TorchSource

_NARROW = (torch.float16, torch.bfloat16)


def widen_module(source: TorchSource) -> bool:
    """Make FP16 and BF16 parameters, buffers and examples FP32; every value stays what it was.

    Returns:
        Whether there were any.
    """
    weights = [*source.module.parameters(), *source.module.buffers()]
    narrow = [tensor for tensor in weights if _is_narrow(tensor)]
    if narrow:
        kinds = sorted({str(tensor.dtype).removeprefix("torch.") for tensor in narrow})
        source.notes.append(
            f"{len(narrow)} of {len(weights)} weights are stored in {' and '.join(kinds)}; the "
            "file holds the same values in float32, and a recipe chooses the precision"
        )
    arguments = (source.args, dict(source.kwargs))
    widens = bool(narrow) or any(map(_is_narrow, tree_leaves(arguments)))
    if source.program is None:
        source.module._apply(_widen)
    elif widens:
        _widen_program(source.program)
        source.module = source.program.module()
    source.args, source.kwargs = tree_map(_widen, arguments)
    return widens


def _widen_program(program: torch.export.ExportedProgram) -> None:
    """Widen a program where it is: its graph keeps its module paths, sizes and guards.

    Such a graph has the types of its training in it, as arguments of casts and of operators that
    make tensors, and as what is known of every result.
    """
    for stored in (program.state_dict, program.constants):
        for name, value in stored.items():
            wide = _widen(value)
            is_parameter = isinstance(value, torch.nn.Parameter) and wide is not value
            stored[name] = torch.nn.Parameter(wide, value.requires_grad) if is_parameter else wide
    graphs = [m for m in program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
    for graph in graphs:
        for node in graph.graph.nodes:
            if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
                node.args = map_aggregate(node.args, _widen_type)
                node.kwargs = map_aggregate(node.kwargs, _widen_type)
            if "val" in node.meta:
                node.meta["val"] = tree_map(_widen, node.meta["val"])
        graph.recompile()


def _widen_type(value: Any) -> Any:
    return torch.float32 if value in _NARROW else value


def _widen(value: Any) -> Any:
    return value.float() if _is_narrow(value) else value


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _NARROW
