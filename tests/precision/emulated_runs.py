"""Runs of emulated models, and how far two results in a 16-bit float are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto
from onnx.reference import ReferenceEvaluator

from tests.builders import BFLOAT16, FLOAT, FLOAT16, loaded, model, op, value
from trtdeploy.backends.onnxruntime.model import open_session
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.emulation import emulate_model

Array = np.ndarray[Any, Any]
NUMPY = {FLOAT16: np.dtype(np.float16), BFLOAT16: np.dtype(ml_dtypes.bfloat16)}
NARROW = [DType.FLOAT16, DType.BFLOAT16]


def emulate(source: ModelProto | OnnxModel, folder: Path, *, observed: Sequence[str] = ()) -> Path:
    """Emulate a typed model and save the result, checked; ``observed`` values become outputs."""
    typed = source if isinstance(source, OnnxModel) else loaded(source, folder)
    before = typed.proto.SerializeToString(deterministic=True)
    emulated = emulate_model(typed)
    assert typed.proto.SerializeToString(deterministic=True) == before
    assert emulated.input_specs() == typed.input_specs()
    assert emulated.output_specs() == typed.output_specs()
    path = folder / "emulated.onnx"
    save_model(emulated, path)
    onnx.checker.check_model(path, full_check=True)
    assert_only_casts_touch_narrow_values(onnx.load(path))
    if observed:
        emulated.graph.output.extend(onnx.ValueInfoProto(name=name) for name in observed)
        save_model(emulated, path)
    return path


def assert_only_casts_touch_narrow_values(proto: ModelProto) -> None:
    index = build_index(OnnxModel(proto, Path("memory.onnx")))
    for scope, node in index.nodes():
        if node.op_type != "Cast":
            for name in (*node.input, *node.output):
                assert scope.type_of(name) not in NARROW, f"{node.op_type} {node.name}: {name}"


def run_emulated(path: Path, feeds: Mapping[str, Array], *, optimize: bool = False) -> list[Array]:
    results: list[Array] = open_session(path, optimize=optimize).run(None, dict(feeds))
    return results


def emulate_and_run(
    source: ModelProto | OnnxModel, feeds: Mapping[str, Array], folder: Path
) -> list[Array]:
    """Run an emulated model with optimisations off and on; the results must be the same."""
    path = emulate(source, folder)
    found = run_emulated(path, feeds)
    optimized = run_emulated(path, feeds, optimize=True)
    for one, other in zip(found, optimized, strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def run_node(node: NodeProto, feeds: Mapping[str, Array], opset: int) -> list[Array]:
    """Run one node by the ONNX reference, in the types of its operands."""
    with np.errstate(all="ignore"):
        results: list[Array] = ReferenceEvaluator(node, opsets={"": opset}).run(None, dict(feeds))
    return results


def count_units(found: Array, expected: Array, code: int) -> Array:
    """Return by how many values of the type each element is off; infinity follows the largest.

    Where both are NaN that is none, where one is, as many as there are.
    """
    with np.errstate(over="ignore"):
        ranks = [_rank(values.astype(NUMPY[code])) for values in (found, expected)]
        nan = [np.isnan(values.astype(np.float32)) for values in (found, expected)]
    off = np.abs(ranks[0] - ranks[1])
    return np.where(nan[0] & nan[1], 0, np.where(nan[0] ^ nan[1], 1 << 16, off))


def _rank(values: Array) -> Array:
    """Number the values of a 16-bit float in their order; both zeros are 0."""
    bits = values.view(np.int16).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def narrow_model(
    nodes: list[NodeProto], code: int = FLOAT16, shape: tuple[int | str, ...] = ("N", "M")
) -> ModelProto:
    """Make ``y`` of ``x``, both narrow."""
    return model(nodes, [value("x", shape, code)], [value("y", shape, code)])


def between_casts(
    nodes: list[NodeProto], code: int, constants: Sequence[TensorProto] = (), opset: int = 17
) -> ModelProto:
    """Make ``y`` of ``x``, both FP32 and (4, 4), with narrow nodes from ``a`` to ``b`` between."""
    ends = [op("Cast", "x", "a", to=code), op("Cast", "b", "y", to=FLOAT)]
    return model(
        [ends[0], *nodes, ends[1]],
        [value("x", (4, 4))],
        [value("y", ("M", "K"))],
        constants,
        opset=opset,
        domains=["com.acme"] if any(node.domain for node in nodes) else [],
    )
