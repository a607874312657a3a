"""A file for deployment computes as in evaluation: enforced before, looked for after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from trtdeploy.core.errors import InputError
from trtdeploy.export.pytorch.code_place import CodePlace, place_of_node

_SHOWN = 3
_BY_STATE = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
_RANDOM = frozenset(
    {"bernoulli", "bernoulli_", "normal", "normal_", "multinomial", "rand",
     "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "uniform",
     "uniform_"}
)  # fmt: skip
"""Operators that draw random numbers whatever their arguments say."""


def enforce_eval_mode(module: torch.nn.Module) -> list[str]:
    """Put the model into evaluation mode; return what the user should know about it.

    Raises:
        InputError: A module stays in training mode whatever one asks for, or was traced in it.
    """
    if isinstance(module, torch.jit.ScriptModule):
        if getattr(module, "training", False):
            module.eval()
        _require_eval_script(module)
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


def find_training_nodes(program: torch.export.ExportedProgram) -> Iterator[tuple[str, CodePlace]]:
    """Yield operators that draw random numbers, or use the statistics of the batch at hand."""
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op != "call_function" or schema is None:
            continue
        names = (argument.name for argument in schema.arguments)
        arguments = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
        value = getattr(arguments.get("input"), "meta", {}).get("val")
        # instances are normalized as the channels of one sample
        alone = isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == 1
        if _is_training(schema.name, arguments, alone=alone):
            yield schema.name.removeprefix("aten::"), place_of_node(node)


def _require_eval_script(module: torch.jit.ScriptModule) -> None:
    """Refuse TorchScript that was traced in training mode, which is written into its operators."""
    # what belongs to a child is in the graph of its parents, too
    for path, child in reversed(list(module.named_modules())):
        for node in child.inlined_graph.nodes():
            if node.schema() == "(no schema)":
                continue
            schema = torch._C.parse_schema(node.schema())
            names = (argument.name for argument in schema.arguments)
            inputs = dict(zip(names, node.inputs(), strict=False))
            arguments = {name: value.toIValue() for name, value in inputs.items()}
            if _is_training(schema.name, arguments, alone=_is_one_sample(inputs.get("input"))):
                operator, kind = schema.name.removeprefix("aten::"), child.original_name
                raise InputError(
                    f"the model computes as in training: {operator} at {CodePlace(path, kind)}",
                    hint="A trace keeps the mode it was made in: call model.eval() before "
                    "torch.jit.trace, and save it again.",
                )


def _is_one_sample(value: torch._C.Value | None) -> bool:
    if value is None or value.node().kind() not in ("aten::view", "aten::reshape"):
        return False
    sizes = list(value.node().inputs())[1]
    first = next(sizes.node().inputs(), None)
    return first is not None and first.toIValue() == 1


def _is_training(operator: str, arguments: Mapping[str, Any], *, alone: bool) -> bool:
    """Tell whether an operator has its training switch on, or is random in any case."""
    switched = arguments.get("training", arguments.get("train")) is True
    if "batch_norm" in operator:
        return switched and not alone
    drops = switched and arguments.get("p", arguments.get("dropout")) != 0
    return drops or bool(arguments.get("dropout_p")) or operator.removeprefix("aten::") in _RANDOM
