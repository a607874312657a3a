"""A batch that the graph fixes is freed, and the result proven on two samples."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from tests.builders import constant, model, op, random_array, value
from tests.export.onnx.files import BATCH, clean, reshaped, run
from trtdeploy.core.errors import CheckFailedError, ModelFileError
from trtdeploy.export.onnx.batch_flow import Growth, grow, list_batch_axes
from trtdeploy.export.onnx.reshape import apply_target


def attention(heads: int = 4, width: int = 32, length: int = 5) -> ModelProto:
    """Make sequence-first attention the way PyTorch writes it: batch and heads share an axis."""
    inner = width // heads
    nodes = [
        op("Transpose", "x", "t", perm=[1, 0, 2]),
        op("Reshape", "t split", "q"),
        op("Transpose", "q", "qt", perm=[1, 0, 2]),
        op("Transpose", "q", "kt", perm=[1, 2, 0]),
        op("MatMul", "qt kt", "scores"),
        op("Softmax", "scores", "p", axis=-1),
        op("MatMul", "p qt", "mixed"),
        op("Transpose", "mixed", "back", perm=[1, 0, 2]),
        op("Reshape", "back flat", "f"),
        op("Gemm", "f w", "g"),
        op("Reshape", "g unflat", "o"),
        op("Add", "o t", "sum"),
        op("Transpose", "sum", "y", perm=[1, 0, 2]),
    ]
    constants = [
        constant("split", [length, heads, inner], np.int64),
        constant("flat", [length, width], np.int64),
        constant("unflat", [length, 1, width], np.int64),
        constant("w", random_array(width, width, scale=0.2)),
    ]
    return model(nodes, [value("x", (1, length, width))], [value("y", None)], constants)


def class_token() -> ModelProto:
    nodes = [op("Concat", "token x", "c", "join", axis=1), op("Relu", "c", "y")]
    return model(
        nodes, [value("x", (1, 4, 8))], [value("y", None)], [constant("token", np.ones((1, 1, 8)))]
    )


def recurrent() -> ModelProto:
    nodes = [
        op("Transpose", "x", "t", perm=[1, 0, 2]),
        op("GRU", "t w r - - h0", "all - ", "gru", hidden_size=3),
        op("Squeeze", "all one", "s"),
        op("Transpose", "s", "y", perm=[1, 0, 2]),
    ]
    nodes[1].output.pop()
    constants = [
        constant("w", random_array(1, 9, 2)),
        constant("r", random_array(1, 9, 3)),
        constant("h0", random_array(1, 1, 3)),
        constant("one", [1], np.int64),
    ]
    return model(nodes, [value("x", (1, 5, 2))], [value("y", None)], constants)


def computed_target() -> ModelProto:
    """Make a Reshape whose target has the batch as a number and the length as a computed size."""
    nodes = [
        op("Shape", "x", "sizes"),
        op("Gather", "sizes one", "length"),
        op("Concat", "batch length four", "target", axis=0),
        op("Reshape", "x target", "y", "rebuilt"),
    ]
    constants = [
        constant("one", [1], np.int64),
        constant("batch", [1], np.int64),
        constant("four", [2, 4], np.int64),
    ]
    return model(nodes, [value("x", (1, "S", 8))], [value("y", None)], constants)


def window_reverse() -> ModelProto:
    """Make windows of an image and the image again, as window attention does."""
    nodes = [
        op("Reshape", "x split", "s"),
        op("Transpose", "s", "t", perm=[0, 1, 3, 2, 4, 5]),
        op("Reshape", "t windows", "w"),
        op("Softmax", "w", "p", axis=1),
        op("Reshape", "p join", "j"),
        op("Transpose", "j", "k", perm=[0, 1, 3, 2, 4, 5]),
        op("Reshape", "k image", "y"),
    ]
    constants = [
        constant("split", [1, 2, 4, 2, 4, 3], np.int64),
        constant("windows", [-1, 16, 3], np.int64),
        constant("join", [1, 2, 2, 4, 4, -1], np.int64),
        constant("image", [1, 8, 8, 3], np.int64),
    ]
    return model(nodes, [value("x", (1, 8, 8, 3))], [value("y", None)], constants)


@pytest.mark.parametrize(
    ("proto", "repairs"),
    [
        (attention(), 3),
        (class_token(), 1),
        (recurrent(), 1),
        (computed_target(), 1),
        (window_reverse(), 3),
        (reshaped([1, 216], batch=1), 1),
        (reshaped([1, 1, 6, -1], batch=1), 1),
        (reshaped([2, 3, 72], batch=2), 1),
        (reshaped([2, 216], batch=2), 1),
        (reshaped([36, 12], batch=2), 1),
        (reshaped([-1, 216], batch=1), 0),
        (reshaped([0, 6, -1], batch=1), 0),
    ],
    ids=["attention", "token", "gru", "computed", "windows", "flat", "spread", "halves", "two",
         "merged", "free", "copied"],
)  # fmt: skip
def test_the_batch_gets_through(tmp_path: Path, proto: ModelProto, repairs: int) -> None:
    result = clean(proto, tmp_path, dynamic=BATCH)
    sentences = [text for text in result.changes if "batch from" in text or "per sample" in text]
    assert len(sentences) == repairs, sentences
    assert result.proof.max_error == 0.0, "at the batch of the source nothing changes"
    assert result.proof.batch_independent is True
    assert result.inputs[0].shape is not None
    shape = [d if isinstance(d, int) else 6 for d in result.inputs[0].shape[1:]]
    x = random_array(6, *shape, seed=1)
    whole = run(result.path, x=x)["y"]
    step = next(point.sizes["batch"] for point in result.proof.points)
    parts = [run(tmp_path / "source.onnx", x=x[i : i + step])["y"] for i in range(0, 6, step)]
    np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-5, atol=1e-5)


def test_a_fixed_size_that_cannot_be_freed_names_its_node(tmp_path: Path) -> None:
    proto = model(
        [op("Add", "x c", "y", "add_example")],
        [value("x", (2, 4))],
        [value("y", None)],
        [constant("c", random_array(2, 4))],
    )
    with pytest.raises((ModelFileError, CheckFailedError), match="add_example"):
        clean(proto, tmp_path, dynamic=BATCH)


def test_a_dynamic_model_is_left_alone(tmp_path: Path) -> None:
    nodes = [
        op("Transpose", "x", "t", perm=[1, 0, 2]),
        op("Reshape", "t flat", "f"),
        op("Neg", "f", "n"),
        op("Reshape", "n unflat", "u"),
        op("Transpose", "u", "y", perm=[1, 0, 2]),
    ]
    constants = [
        constant("flat", [-1, 8], np.int64),
        constant("unflat", [5, -1, 8], np.int64),
    ]
    result = clean(
        model(nodes, [value("x", ("batch", 5, 8))], [value("y", None)], constants), tmp_path
    )
    assert not [text for text in result.changes if "takes the batch" in text]
    assert result.proof.batch_independent is True


SIZES = st.integers(1, 4)


@given(shape=st.lists(SIZES, min_size=1, max_size=4), target=st.lists(SIZES, max_size=3))
@settings(max_examples=200, deadline=None)
def test_a_target_is_applied_as_numpy_does(shape: list[int], target: list[int]) -> None:
    try:
        expected = np.zeros(shape).reshape([*target, -1]).shape
    except ValueError:
        expected = None
    assert apply_target([*target, -1], tuple(shape)) == expected


@given(before=st.lists(SIZES, min_size=1, max_size=4), axis=st.integers(0, 4), merged=st.booleans())
@settings(max_examples=200, deadline=None)
def test_the_batch_is_found_again_behind_a_reshape(
    before: list[int], axis: int, merged: bool
) -> None:
    """Elements keep their order in memory, so a batch of 5 can be in one place only."""
    axis %= len(before) + 1
    small = (*before[:axis], 5, *before[axis:])
    outer, inner = math.prod(before[:axis]), math.prod(before[axis:])
    after = (outer * 5, inner) if merged else (outer, 5, inner)
    found = list_batch_axes(Growth(small, grow(small, axis), axis), after, 5)
    assert found == [0 if merged else 1]


def test_an_axis_named_as_the_batch_leaves_the_others_their_own_sizes(tmp_path: Path) -> None:
    nodes = [
        op("Reshape", "x fixed", "r"),
        op("ReduceMean", "boxes", "m", keepdims=1),
        op("Add", "r m", "y"),
    ]
    inputs = [value("x", ("batch", 2, 3)), value("boxes", ("num_boxes", 4))]
    fixed = constant("fixed", [1, 6], np.int64)
    result = clean(model(nodes, inputs, [value("y", (1, 6))], [fixed]), tmp_path)
    assert result.proof.batch_independent is True
    found = run(result.path, x=random_array(3, 2, 3), boxes=random_array(5, 4))["y"]
    assert found.shape == (3, 6)
    assert {"batch", "num_boxes"} <= result.proof.points[0].sizes.keys()
