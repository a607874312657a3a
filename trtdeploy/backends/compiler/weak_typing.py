"""Precision under weak typing (TensorRT 8.6, and 10.x on request): flags and pinned layers."""

from __future__ import annotations

import re
from typing import Any

from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.backends.compiler.network import iterate_layers
from trtdeploy.backends.trt_module import name_product, set_flag
from trtdeploy.core.errors import NotPossibleError

_ONNX_NODE = re.compile(r"\[ONNX Layer: (.*?)\](?=[\x1e\x1f]|$)")
"""Metadata of a layer; \\x1e and \\x1f separate the nodes of one that was made from several."""


def apply_weak_typing(trt: Any, config: Any, network: Any, request: CompileRequest) -> list[str]:
    """Set the recipe's flags and pin layers to FP32; return the names of the flags.

    Under weak typing TensorRT may pick any enabled type per layer, so the nodes that a plan keeps
    in FP32 are pinned and OBEY_PRECISION_CONSTRAINTS makes the pins binding.

    Raises:
        NotPossibleError: This TensorRT lacks a flag, or the recipe needs strong typing.
    """
    if request.weak_flags is None:
        raise NotPossibleError(
            f"recipe {request.spec.recipe} needs a strongly typed network; this "
            f"{name_product(trt)} network would be weakly typed",
            hint="Use fp16 or int8 here, or a strongly typed network of TensorRT 10 or newer.",
        )
    flags = list(request.weak_flags)
    pinned = pin_layers(trt, network, set(request.fp32_nodes)) if flags else 0
    if pinned:
        flags.append("OBEY_PRECISION_CONSTRAINTS")
    for name in flags:
        set_flag(trt, config, name)
    return flags


def pin_layers(trt: Any, network: Any, fp32_nodes: set[str]) -> int:
    """Pin every layer made from one of the nodes to FP32; return how many were pinned."""
    floats = (trt.DataType.FLOAT, trt.DataType.HALF)
    pinned = 0
    for layer in iterate_layers(network):
        if fp32_nodes.isdisjoint(find_onnx_nodes(layer)):
            continue
        outputs = [i for i in range(layer.num_outputs) if layer.get_output(i).dtype in floats]
        if not outputs or layer.type in (trt.LayerType.CAST, trt.LayerType.CONSTANT):
            continue  # pinning a Cast, a constant or integer arithmetic is refused
        layer.precision = trt.DataType.FLOAT
        for position in outputs:
            layer.set_output_type(position, trt.DataType.FLOAT)
        pinned += 1
    return pinned


def find_onnx_nodes(layer: Any) -> tuple[str, ...]:
    """Return the ONNX nodes a layer was made from: its metadata says so, else its name."""
    return tuple(_ONNX_NODE.findall(layer.metadata)) or (layer.name,)
