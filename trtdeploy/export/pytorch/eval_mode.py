"""A file for deployment computes as in evaluation: enforced before, looked for after."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.pytorch.place import Place, place_of_node

_SHOWN = 3
_BY_STATE = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
_RANDOM = frozenset(
    {"bernoulli", "bernoulli_", "native_dropout", "normal", "normal_", "multinomial", "rand",
     "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "uniform",
     "uniform_", "rrelu_with_noise"}
)  # fmt: skip
_SWITCHED = {"dropout": 2, "feature_dropout": 2, "alpha_dropout": 2, "batch_norm": 5}
"""Operators with a training switch, and the position of that argument."""


def enforce_eval_mode(module: torch.nn.Module) -> list[str]:
    """Put the model into evaluation mode; return what the user should know about it.

    Raises:
        InputError: A module stays in training mode whatever one asks for.
    """
    if isinstance(module, torch.jit.ScriptModule):
        if getattr(module, "training", False):
            module.eval()
        return []
    if isinstance(module, torch.fx.GraphModule) and not _takes_eval(module):
        return []
    left = [name for name, child in module.named_modules() if child.training]
    matters = [name for name in left if isinstance(module.get_submodule(name), _BY_STATE)]
    module.eval()
    stubborn = [name for name, child in module.named_modules() if child.training]
    if stubborn:
        kind = type(module.get_submodule(stubborn[0])).__name__
        raise InputError(
            f"module {stubborn[0]!r} ({kind}) stays in training mode after eval()",
            hint="Let its train() pass the mode on: super().train(mode).",
        )
    if not matters:
        return []
    shown = ", ".join(matters[:_SHOWN]) + (" ..." if len(matters) > _SHOWN else "")
    return [f"{len(matters)} dropout or normalization modules were in training mode: {shown}; "
            "exported in evaluation mode"]  # fmt: skip


def _takes_eval(program: torch.fx.GraphModule) -> bool:
    """Tell whether a graph has a mode at all.

    That of ``torch.export`` refuses ``eval()``: the mode is written into its operators, where
    ``require_eval_graph`` looks for it.
    """
    try:
        program.eval()
    except NotImplementedError:
        return False
    return True


def require_eval_graph(program: torch.export.ExportedProgram) -> None:
    """Refuse a program that draws random numbers or normalizes by the batch at hand.

    Raises:
        InputError: Names the module and the line of the first such operator.
    """
    for operator, place in find_training_nodes(program):
        raise InputError(
            f"the model computes as in training: {operator} at {place}",
            hint="Use the module's own flag: F.dropout(x, p, training=self.training), BatchNorm "
            "with track_running_stats=True; sampling belongs outside the exported model.",
        )


def find_training_nodes(program: torch.export.ExportedProgram) -> Iterator[tuple[str, Place]]:
    """Yield operators that draw random numbers, or use the statistics of the batch at hand."""
    for node in program.graph.nodes:
        if node.op != "call_function":
            continue
        name = getattr(node.target, "_opname", "") or str(node.target).split(".")[1:2]
        name = name if isinstance(name, str) else "".join(name)
        switch = _SWITCHED.get(name)
        on = switch is not None and len(node.args) > switch and node.args[switch] is True
        if name in _RANDOM or on:
            yield name, place_of_node(node)
