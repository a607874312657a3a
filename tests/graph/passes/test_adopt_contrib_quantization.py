"""AdoptContribQuantizationPass: ONNX Runtime's own Q/DQ nodes in the standard domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, checker, helper

from tests.builders import chain, constant, in_memory, model, op, random_array, value
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass

INT8, INT16 = TensorProto.INT8, TensorProto.INT16
CONTRIB = "com.microsoft"


def contrib_pair(dtype: int, opset: int, scale: Any = 0.1, **axis: int) -> ModelProto:
    nodes = [
        op("QuantizeLinear", "x s z", "q", "x_q", domain=CONTRIB, **axis),
        op("DequantizeLinear", "q s z", "y", "x_dq", domain=CONTRIB, **axis),
    ]
    zeros = helper.make_tensor("z", dtype, np.shape(scale), np.zeros(np.shape(scale)).ravel())
    constants = [constant("s", scale), zeros]
    return model(
        nodes, [value("x", ("N", 4))], [value("y", ("N", 4))], constants,
        opset=opset, domains=(CONTRIB,),
    )  # fmt: skip


def run(proto: ModelProto) -> Any:
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": random_array(2, 4)})[0]


@pytest.mark.parametrize(
    ("proto", "opset"),
    [
        (contrib_pair(INT8, 17), 17),
        (contrib_pair(INT8, 11), 11),
        (contrib_pair(INT8, 11, np.full(4, 0.1), axis=1), 13),
        (contrib_pair(INT16, 17), 21),
    ],
)
def test_same_results_at_the_opset_that_has_the_form(proto: ModelProto, opset: int) -> None:
    made = in_memory(proto).copy()
    AdoptContribQuantizationPass()(made)
    assert [node.domain for node in made.graph.node] == ["", ""]
    assert made.opset == opset
    checker.check_model(made.proto, full_check=True)
    np.testing.assert_array_equal(run(made.proto), run(proto))
    assert made.changes[-1] == "2 Q/DQ nodes of com.microsoft became those of ONNX"


def test_without_raising_the_opset_what_needs_it_stays() -> None:
    made = in_memory(contrib_pair(INT16, 17))
    AdoptContribQuantizationPass(raise_opset=False)(made)
    assert [node.domain for node in made.graph.node] == [CONTRIB, CONTRIB]
    assert (made.opset, made.changes) == (17, [])


def test_other_models_are_left_alone() -> None:
    proto = chain(["Relu"])
    made = in_memory(proto).copy()
    AdoptContribQuantizationPass()(made)
    assert made.proto == proto
