"""What the proof of a cleaned file compares, and what it says it did not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from tests.builders import constant, model, op, random_array, value
from tests.export.onnx.files import BATCH, clean, reshaped, run
from trtdeploy.core.errors import CheckFailedError
from trtdeploy.export.request import ProofOptions
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model


def point_cloud() -> ModelProto:
    """Make a network whose first axis counts the points of one sample."""
    nodes = [
        op("Reshape", "x one", "r"),
        op("MatMul", "r w", "f"),
        op("ReduceMax", "f", "y", axes=[1], keepdims=0),
    ]
    constants = [constant("one", [1, -1, 3], np.int64), constant("w", random_array(3, 16))]
    return model(nodes, [value("x", ("num_points", 3))], [value("y", (1, 16))], constants)


def softmax_over_all() -> ModelProto:
    nodes = [op("Reshape", "x one", "r"), op("Softmax", "r", "y", axis=-1)]
    constants = [constant("one", [1, -1], np.int64)]
    return model(nodes, [value("x", ("batch", 4, 8))], [value("y", (1, None))], constants)


@pytest.mark.parametrize(
    ("proto", "shape"),
    [
        (point_cloud(), (6, 3)),
        (softmax_over_all(), (6, 4, 8)),
        (reshaped([1, 6, -1]), (6, 3, 8, 8)),
    ],
    ids=["points", "softmax", "mixed"],
)
def test_a_batch_that_the_source_takes_stays_as_it_is(
    tmp_path: Path, proto: ModelProto, shape: tuple[int, ...]
) -> None:
    result = clean(proto, tmp_path)
    assert [next(iter(point.sizes.values())) for point in result.proof.points] == [1, 2]
    assert result.proof.batch_independent is False
    assert "=batch keeps them apart" in " ".join(result.notes)
    x = random_array(*shape)
    expected = run(tmp_path / "source.onnx", x=x)["y"]
    np.testing.assert_array_equal(run(result.path, x=x)["y"], expected)


def mixing(share: float) -> ModelProto:
    """Make ``y = x + share * (x - mean over the batch)``: of one sample alone, ``x`` itself."""
    nodes = [
        op("ReduceMean", "x", "m", axes=[0], keepdims=1),
        op("Sub", "x m", "d"),
        op("Mul", "d share", "e"),
        op("Add", "x e", "y"),
    ]
    return model(nodes, [value("x", (1, 64))], [value("y", (1, 64))], [constant("share", share)])


@pytest.mark.parametrize("times", [3, 8, 100])
def test_samples_mixed_by_little_more_than_the_tolerance_are_refused(
    tmp_path: Path, times: float
) -> None:
    rtol = 1e-3
    with pytest.raises(CheckFailedError, match="samples of a batch influence each other") as caught:
        clean(mixing(times * rtol), tmp_path, dynamic=BATCH, proof=ProofOptions(rtol=rtol))
    error = float(caught.value.message.rpartition("error of ")[2].rstrip(")"))
    assert rtol < error < times * rtol
    assert clean(mixing(rtol / 10), tmp_path, dynamic=BATCH).proof.batch_independent


def branching(condition: str, *nodes: onnx.NodeProto) -> ModelProto:
    """Make ``y = x + 1 if condition else x + 2``."""
    branches = {
        f"{name}_branch": onnx.helper.make_graph(
            [op("Add", f"x {name}_number", name)], name, [], [value(name, ("N", 4))]
        )
        for name in ("then", "else")
    }
    constants = [constant("then_number", 1.0), constant("else_number", 2.0)]
    inputs = [value("x", ("N", 4)), value("c", (), onnx.TensorProto.BOOL)]
    decide = op("If", condition, "y", "decide", **branches)
    return model([*nodes, decide], inputs, [value("y", ("N", 4))], constants)


def test_both_branches_of_an_if_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = clean(branching("c"), tmp_path)
    assert {point.sizes["c"] for point in result.proof.points} == {0, 1}
    assert not result.notes
    for broken in ("then", "else"):

        def damage(model: OnnxModel, path: Path, broken: str = broken) -> None:
            for tensor in model.graph.initializer:
                if tensor.name == f"{broken}_number":
                    tensor.CopyFrom(constant(tensor.name, 3.0))
            save_model(model, path)

        monkeypatch.setattr("trtdeploy.export.onnx.source.save_model", damage)
        with pytest.raises(CheckFailedError, match="output 'y' of the file differs"):
            clean(branching("c"), tmp_path)


def test_an_if_that_decides_by_computed_values_is_named(tmp_path: Path) -> None:
    result = clean(branching("other", op("Not", "c", "other")), tmp_path)
    assert result.notes == (
        "the proof may have run one branch only of If 'decide': computed values decide there",
    )
