"""Proof that an engine has the precision it is named after."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from typing import Any

from trtdeploy.backends.compiler.compile_request import PrecisionProof
from trtdeploy.core.errors import CompileError

LOW_TYPES = {"float16": "HALF", "bfloat16": "BF16", "int8": "INT8", "float8e4m3fn": "FP8"}
"""Label of a narrow type to the member of ``trt.DataType``."""

_UNKNOWN = "unknown"
_SPELLINGS = {
    "fp32": "FLOAT", "float": "FLOAT", "f32": "FLOAT",
    "fp16": "HALF", "half": "HALF", "f16": "HALF", "h884": "HALF", "h1688": "HALF",
    "h16816": "HALF",
    "bf16": "BF16", "bfloat16": "BF16",
    "fp8": "FP8", "fp8e4m3": "FP8", "e4m3": "FP8",
    "int8": "INT8", "i8": "INT8", "int4": "INT4", "fp4": "FP4",
    "int32": "INT32", "int64": "INT64", "uint8": "UINT8", "bool": "BOOL",
}  # fmt: skip
"""How the engine inspector's texts and the names of kernels spell a type."""
_KERNEL_OPERANDS = re.compile(r"(f32|f16|bf16|i8|e4m3)(?:f32|f16|bf16|i8|i32|e4m3)")
"""E.g. ``f16f16`` in sm80_xmma_gemm_f16f16_f16f32_f32: operands, then result."""


def prove_from_network(counts: dict[str, int], low_dtype: str) -> PrecisionProof:
    """Judge a strongly typed network: the compiler may not change its types.

    Args:
        counts: Layers per element type, from ``count_layer_types``.
        low_dtype: Label of the type that must occur; empty for none.

    Raises:
        CompileError: The type does not occur.
    """
    if low_dtype and LOW_TYPES[low_dtype] not in counts:
        raise _explain_loss("the strongly typed network", low_dtype, counts)
    return PrecisionProof("strongly typed network", dict(sorted(counts.items())))


def prove_from_inspector(
    text: str, low_dtype: str, network_proof: PrecisionProof | None
) -> PrecisionProof:
    """Judge a finished engine by its inspector's JSON.

    A layer's type is read from its weights, else from the name of its kernel, else from its
    outputs: ``Format/Datatype`` in TensorRT 8.6 and 10.x, ``Datatype`` in 11.x. With dynamic
    shapes outputs read "N/A due to dynamic shapes", and fused sub-graphs hide what is inside.

    Args:
        text: What ``get_engine_information`` returned.
        low_dtype: Label of the type that must occur; empty for none.
        network_proof: Of a strongly typed network, for engines that show no types; else None.

    Raises:
        CompileError: Every layer shows its type and none is ``low_dtype``.
    """
    layers = read_layer_types(text)
    counts = dict(Counter(kind for _, kind in layers))
    proof = PrecisionProof("engine inspector", counts, dict(layers))
    if not low_dtype or LOW_TYPES[low_dtype] in counts:
        return proof
    if layers and _UNKNOWN not in counts:
        raise _explain_loss("the finished engine", low_dtype, counts)
    if network_proof:
        return replace(network_proof, per_layer=proof.per_layer)
    unseen = f"nothing: no layer shows {low_dtype}, some show no type"
    return replace(proof, proven_by=unseen)


def read_layer_types(text: str) -> list[tuple[str, str]]:
    """Return name and element type of every layer the engine inspector lists."""
    try:
        found = json.loads(text, strict=False)  # metadata has raw separator characters
    except json.JSONDecodeError:
        return []  # layer names are not escaped: a quote in one breaks the text
    layers = [layer for layer in found.get("Layers", []) if isinstance(layer, dict)]
    return [(str(layer.get("Name", i)), _read_layer(layer)) for i, layer in enumerate(layers)]


def _read_layer(layer: dict[str, Any]) -> str:
    weights = layer.get("Weights")
    texts = [str(weights.get("Type", ""))] if isinstance(weights, dict) else []
    texts.append(str(layer.get("TacticName", "")))
    if "ForeignNode" not in str(layer.get("Name", "")):  # whose outputs say nothing of its inside
        outputs = layer.get("Outputs", [])
        texts += [str(o.get("Datatype") or o.get("Format/Datatype") or "") for o in outputs]
    return next(filter(None, map(_read_type, texts)), _UNKNOWN)


def _read_type(text: str) -> str | None:
    for word in re.findall(r"[a-z][a-z0-9]*", text.lower()):
        operands = _KERNEL_OPERANDS.fullmatch(word)
        kind = _SPELLINGS.get(operands[1] if operands else word)
        if kind is not None:
            return kind
    return None


def _explain_loss(where: str, low_dtype: str, counts: dict[str, int]) -> CompileError:
    return CompileError(
        f"{where} has no {low_dtype} layer although the recipe asks for {low_dtype}; "
        f"it has {counts or 'no layers'}",
        hint="TensorRT lost the precision; nothing was kept. Please report this as a bug.",
    )
