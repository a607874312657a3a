"""What has to hold for every typed model, and ways to run one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, TensorProto
from onnx.reference import ReferenceEvaluator

from tests.builders import Feeds, loaded
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel, walk_graphs, walk_nodes
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typed_model import TypedModel, apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

Array = np.ndarray[Any, Any]


def type_model(
    proto: ModelProto, folder: Path, recipe: str = "fp16", **options: Any
) -> tuple[TypedModel, ModelProto]:
    """Type ``proto`` from file to file, check the result, return it as ONNX reads it."""
    if not options.pop("keep_io", True):
        options["io"] = "recipe"
    typed = apply_recipe(loaded(proto, folder), TypingOptions(RECIPES[recipe], **options))
    path = folder / f"typed_{recipe}.onnx"
    save_model(typed.model, path)
    onnx.checker.check_model(path, full_check=True)
    result = onnx.load(path)
    if recipe != "bf16":  # ONNX Runtime has no bfloat16 kernels for the CPU
        load_session(result)
    assert_tidy(result)
    if recipe in ("fp16", "bf16"):
        assert not any(graph.value_info for graph in walk_graphs(result.graph))
    if "io" not in options:
        assert describe_io(result) == describe_io(proto)
    return typed, result


def describe_io(proto: ModelProto) -> list[tuple[str, int]]:
    """Return name and element type of what a caller feeds and fetches, in order."""
    specs = OnnxModel(proto, Path("memory.onnx"))
    return [(s.name, s.dtype.code) for s in (*specs.input_specs(), *specs.output_specs())]


def assert_tidy(proto: ModelProto) -> None:
    """Names are unique, nothing is unused, and no Cast undoes or repeats another."""
    nodes = list(walk_nodes(proto.graph))
    index = build_index(OnnxModel(proto, Path("memory.onnx")))
    read = {name for node in nodes for name in node.input}
    read |= {value.name for scope in index.scopes for value in scope.graph.output}
    doubles = [n for n, count in Counter(node.name for node in nodes).items() if count > 1]
    assert not doubles
    for scope in index.scopes:
        assert not scope.initializers.keys() - read
        for node in scope.nodes:
            if node.op_type == "Cast":
                assert_useful_cast(scope, node, read)


def assert_useful_cast(scope: Any, cast: onnx.NodeProto, read: set[str]) -> None:
    source, target = scope.type_of(cast.input[0]), DType.from_onnx(cast.attribute[0].i)
    assert cast.output[0] in read, f"nobody reads {cast.name}"
    if cast.output[0] not in scope.outputs:
        assert source is not target, f"{cast.name} changes nothing"
    before = scope.producer_of(cast.input[0])
    widened = before is not None and before.op_type == "Cast" and source is DType.FLOAT32
    if before is not None and widened and cast.output[0] not in scope.outputs:
        assert scope.type_of(before.input[0]) is not target, f"{cast.name} undoes {before.name}"


def load_session(proto: ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def run_ort(proto: ModelProto, feeds: Feeds) -> list[Array]:
    return load_session(proto).run(None, dict(feeds))


def run_reference(proto: ModelProto, feeds: Feeds) -> list[Array]:
    """Run with the semantics of the types: FP16 overflow shows, as on a GPU."""
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(proto).run(None, dict(feeds))


def relative_error(found: Array, expected: Array) -> float:
    """Return the largest difference in units of the largest magnitude; inf where NaN differs."""
    found, expected = found.astype(np.float64), expected.astype(np.float64)
    assert found.shape == expected.shape
    if not np.array_equal(np.isfinite(found), np.isfinite(expected)):
        return float("inf")
    amax = np.abs(expected).max(initial=0.0) or 1.0
    return float(np.abs(found - expected).max(initial=0.0) / amax)


def types_of(proto: ModelProto) -> dict[str, DType]:
    """Return the element type of every value of every graph."""
    index = build_index(OnnxModel(proto, Path("memory.onnx")))
    return {name: dtype for scope in index.scopes for name, dtype in scope.types.items()}


def operand_types(proto: ModelProto, node_name: str) -> list[DType]:
    """Return the types of a node's operands, UNDEFINED for one that is left out."""
    index = build_index(OnnxModel(proto, Path("memory.onnx")))
    scope, node = next((s, n) for s, n in index.nodes() if n.name == node_name)
    return [scope.type_of(name) for name in node.input]


def count_casts(proto: ModelProto) -> Counter[str]:
    """Return how many Casts there are to each type."""
    return Counter(
        TensorProto.DataType.Name(node.attribute[0].i)
        for node in walk_nodes(proto.graph)
        if node.op_type == "Cast"
    )
