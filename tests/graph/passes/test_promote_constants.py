from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import SparseTensorProto, helper, numpy_helper

from tests.builders import FLOAT, INT64, branch_model, constant, in_memory, model, op, value
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.passes.promote_constants import PromoteConstantsPass


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ({"value": constant("", [[1.0, 2.0]])}, np.array([[1, 2]], np.float32)),
        ({"value_float": 1.5}, np.array(1.5, np.float32)),
        ({"value_floats": [1.5, 2]}, np.array([1.5, 2], np.float32)),
        ({"value_int": 7}, np.array(7, np.int64)),
        ({"value_ints": [7, -8]}, np.array([7, -8], np.int64)),
        ({"value_string": "a"}, np.array(b"a", object)),
        ({"value_strings": ["a", "b"]}, np.array([b"a", b"b"], object)),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_every_form_becomes_an_initializer(attribute: dict[str, Any], expected: Any) -> None:
    nodes = [op("Constant", "", "c", **attribute), op("Identity", "c", "y")]
    found = in_memory(model(nodes, [], [value("y", None)]))
    PromoteConstantsPass()(found)
    (tensor,) = found.graph.initializer
    made = numpy_helper.to_array(tensor)
    assert tensor.name == "c"
    assert made.shape == expected.shape
    assert [str(v).encode() if isinstance(v, str) else v for v in made.ravel()] == list(
        expected.ravel()
    )
    assert [node.op_type for node in found.graph.node] == ["Identity"]


def test_constants_that_are_results_stay_nodes() -> None:
    nodes = [op("Constant", "", "y", value_float=1.0)]
    found = in_memory(model(nodes, [], [value("y", ())]))
    PromoteConstantsPass()(found)
    assert [node.op_type for node in found.graph.node] == ["Constant"]
    assert not found.graph.initializer


def test_nested_constants_stay_in_their_graph() -> None:
    proto = branch_model(
        [op("Constant", "", "c", value_float=1.0), op("Add", "x c", "t")],
        [op("Relu", "x", "e")],
    )
    found = in_memory(proto)
    PromoteConstantsPass()(found)
    assert not found.graph.initializer
    assert [t.name for t in found.graph.node[0].attribute[0].g.initializer] == ["c"]


def sparse(indices: Any, dims: list[int], name: str = "s") -> SparseTensorProto:
    values = constant(name, [1.0, 2.0])
    return helper.make_sparse_tensor(values, constant("", indices, np.int64), dims)


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]], ids=["flat", "coordinates"])
def test_sparse_tensors_become_dense(indices: Any) -> None:
    nodes = [
        op("Constant", "", "c", sparse_value=sparse(indices, [2, 3], "")),
        op("Add", "s c", "y"),
    ]
    found = in_memory(model(nodes, [], [value("y", [2, 3])]))
    found.graph.sparse_initializer.append(sparse(indices, [2, 3]))
    PromoteConstantsPass()(found)
    assert not found.graph.sparse_initializer
    session = onnxruntime.InferenceSession(found.proto.SerializeToString())
    assert np.array_equal(session.run(None, {})[0], [[0, 2, 0], [0, 0, 4]])


@pytest.mark.parametrize(
    ("indices", "dims", "message"),
    [
        ([1, 60], [2, 3], "outside its shape"),
        ([[0, 1], [1, 9]], [2, 3], "outside its shape"),
        ([1, 2, 3], [2, 3], "outside its shape"),
        ([1, 2], [1 << 20, 1 << 20], "too large"),
        ([1, 2], [2, -3], "too large"),
    ],
)
def test_damaged_sparse_tensors_are_refused(indices: Any, dims: list[int], message: str) -> None:
    found = in_memory(model([], [], [value("s", None, FLOAT), value("n", (), INT64)]))
    found.graph.sparse_initializer.append(sparse(indices, dims))
    with pytest.raises(ModelFileError, match=message):
        PromoteConstantsPass()(found)
