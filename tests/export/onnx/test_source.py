"""An ONNX file, cleaned: what comes out, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from tests.builders import (
    FLOAT16,
    INT64,
    constant,
    find_node,
    model,
    op,
    random_array,
    save,
    value,
)
from tests.export.onnx.files import BATCH, clean, convolution, reshaped, run
from trtdeploy.cli.main import run as run_command
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import CheckFailedError, InputError, ModelFileError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.onnx.source import clean_onnx
from trtdeploy.export.request import ExportRequest, InputSpec, ProofOptions
from trtdeploy.graph.export_facts import read_size_rules
from trtdeploy.graph.loading import load_model

TRAINING = [
    op("BatchNormalization", "c scale bias mean var", "n mean2 var2", "bn", training_mode=1),
    op("Dropout", "n ratio train", "y", "drop"),
]
STATISTICS = [
    *(constant(name, np.linspace(0.5, 1.5, 6)) for name in ("scale", "bias", "mean", "var")),
    constant("ratio", 0.5),
    constant("train", True, np.bool_),
]


def training_model() -> ModelProto:
    nodes = [op("Conv", "x w", "c", "conv"), *TRAINING]
    weights = constant("w", random_array(6, 3, 3, 3, scale=0.3))
    inputs = [value("x", ("N", 3, 8, 8))]
    return model(nodes, inputs, [value("y", None)], [weights, *STATISTICS])


def test_a_batch_that_a_reshape_fixes_is_freed(tmp_path: Path) -> None:
    proto = convolution(
        [op("Reshape", "r target", "f", "reshape_batch1"), op("MatMul", "f wf", "y", "fc")],
        constant("target", [1, 216], np.int64),
        constant("wf", random_array(216, 5, scale=0.1)),
        y=("batch", 5),
    )
    result = clean(proto, tmp_path)
    assert result.changes == (
        "Reshape 'reshape_batch1' takes the batch from its operand: target [1, 216] became "
        "[0, 216]",
    )
    assert result.proof.max_error == 0.0
    assert result.proof.batch_independent is True
    x = random_array(2, 3, 8, 8)
    both = run(result.path, x=x)["y"]
    assert both.shape == (2, 5)
    alone = np.concatenate([run(tmp_path / "source.onnx", x=x[i : i + 1])["y"] for i in (0, 1)])
    np.testing.assert_allclose(both, alone, rtol=1e-6, atol=1e-6)


def test_samples_that_a_reshape_mixes_are_kept_apart_when_asked(tmp_path: Path) -> None:
    result = clean(reshaped([1, 6, -1]), tmp_path, dynamic=BATCH)
    assert "[1, 6, -1] became [0, 6, -1]" in " ".join(result.changes)
    assert "the source gives other results at batch=2" in " ".join(result.notes)
    assert result.proof.batch_independent is True
    assert result.outputs[0].shape == ("batch", 6, 1)
    x = random_array(2, 3, 8, 8)
    both = run(result.path, x=x)["y"]
    assert both.shape == (2, 6, 1)
    np.testing.assert_array_equal(both[:1], run(tmp_path / "source.onnx", x=x[:1])["y"])


@pytest.mark.parametrize("nodes", [TRAINING, TRAINING[1:]], ids=["both", "dropout"])
def test_training_mode_is_refused_by_name(tmp_path: Path, nodes: list[onnx.NodeProto]) -> None:
    proto = training_model()
    for node in TRAINING:
        if node not in nodes:
            proto.graph.node.remove(node)
            proto.graph.node[-1].input[0] = "c"
    with pytest.raises(ModelFileError) as caught:
        clean(proto, tmp_path)
    assert all(node.name in caught.value.message for node in nodes)
    assert "model.eval()" in caught.value.hint
    assert "--config training=inference" in caught.value.hint
    assert not (tmp_path / "out").exists()


def test_training_mode_becomes_inference_when_asked(tmp_path: Path) -> None:
    result = clean(training_model(), tmp_path, config=("training=inference",))
    x = random_array(2, 3, 8, 8)
    first, second = (run(result.path, x=x)["y"] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    weights = {t.name: numpy_helper.to_array(t) for t in training_model().graph.initializer}
    mean, var, scale, bias = (
        weights[name].reshape(1, 6, 1, 1) for name in ("mean", "var", "scale", "bias")
    )
    plain = model(
        [op("Conv", "x w", "y")],
        [value("x", ("N", 3, 8, 8))],
        [value("y", None)],
        [constant("w", weights["w"])],
    )
    convolved = run(save(plain, tmp_path / "plain.onnx"), x=x)["y"]
    expected = (convolved - mean) / np.sqrt(var + 1e-5) * scale + bias
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-5)


def test_every_blocker_is_in_one_error(tmp_path: Path) -> None:
    labels = onnx.helper.make_tensor("labels", onnx.TensorProto.STRING, [2], [b"cat", b"dog"])
    proto = model(
        [
            op("FancyWarp", "x", "a", "fancy1", domain="acme.ops"),
            op("FancyWarp", "a", "b", "", domain="acme.ops"),
            op("FastGelu", "b", "y", "fg", domain="com.microsoft"),
            op("Gather", "labels idx", "label", "lookup"),
        ],
        [value("x", ("N", 8))],
        [value("y", ("N", 8)), value("label", (1,), onnx.TensorProto.STRING)],
        [labels, constant("idx", [1], np.int64)],
        domains=["acme.ops", "com.microsoft"],
    )
    with pytest.raises(ModelFileError) as caught:
        clean(proto, tmp_path)
    for words in ("fancy1 (acme.ops.FancyWarp)", "unnamed #1", "fg (com.microsoft.FastGelu)",
                  "'labels' holds text"):  # fmt: skip
        assert words in caught.value.message


def test_a_file_newer_than_everything_is_refused(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x")], [value("y")])
    proto.opset_import[0].version, proto.ir_version = 90, 60
    with pytest.raises(ModelFileError, match="opset 90"):
        clean(proto, tmp_path)


def test_axes_become_dynamic_and_opset_rises(tmp_path: Path) -> None:
    nodes = [op("Softmax", "x", "s", axis=1), op("Mul", "s x", "y")]
    proto = model(nodes, [value("x", (1, 5))], [value("y", (1, 5))], opset=11)
    result = clean(proto, tmp_path, dynamic=BATCH)
    assert result.inputs[0].shape == ("batch", 5)
    assert result.outputs[0].shape == ("batch", 5)
    assert (result.opset, result.opset_reason) == (17, "every TensorRT since 8.6 reads it")
    assert result.proof.max_error < 1e-6
    onnx.checker.check_model(str(result.path), full_check=True)


def test_axes_become_fixed_and_their_arithmetic_disappears(tmp_path: Path) -> None:
    nodes = [
        op("Shape", "x", "sizes"),
        op("Gather", "sizes two", "width"),
        op("Div", "width two", "half"),
        op("Unsqueeze", "half axes", "end"),
        op("Slice", "x start end axis", "y"),
    ]
    constants = [
        constant("two", 2, np.int64),
        constant("axes", [0], np.int64),
        constant("start", [0], np.int64),
        constant("axis", [2], np.int64),
    ]
    proto = model(nodes, [value("x", ("N", 3, "W"))], [value("y", None)], constants)
    given = InputSpec("x", DType.FLOAT32, (1, 3, 10))
    result = clean(proto, tmp_path, dynamic={}, inputs=(given,))
    assert result.inputs[0].shape == (1, 3, 10)
    assert result.outputs[0].shape == (1, 3, 5)
    written = load_model(result.path)
    assert [node.op_type for node in written.graph.node] == ["Slice"]
    assert result.proof.batch_independent is None


def test_an_axis_without_a_size_cannot_be_fixed(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)])
    with pytest.raises(UsageError, match="axis 0 \\(N\\)"):
        clean(proto, tmp_path, dynamic={"x": {}})


def test_an_axis_whose_size_is_written_inside_is_refused(tmp_path: Path) -> None:
    proto = convolution(
        [op("Add", "r bias", "y", "add")], constant("bias", random_array(1, 6, 6, 6)), batch=1
    )
    wanted = {"x": {0: "batch", 3: "width"}}
    with pytest.raises((CheckFailedError, ModelFileError), match=r"add|old size"):
        clean(proto, tmp_path, dynamic=wanted)
    assert list((tmp_path / "out").iterdir() if (tmp_path / "out").exists() else []) == []


def test_a_sample_picked_out_of_the_batch_is_found(tmp_path: Path) -> None:
    proto = model(
        [op("Gather", "x first", "y", "only_the_first", axis=0)],
        [value("x", (1, 4))],
        [value("y", (1, 4))],
        [constant("first", [0], np.int64)],
    )
    with pytest.raises(CheckFailedError, match="samples of a batch influence each other"):
        clean(proto, tmp_path, dynamic=BATCH)
    assert list((tmp_path / "out").iterdir()) == []


def test_samples_that_a_freed_batch_mixes_a_little_are_found(tmp_path: Path) -> None:
    proto = model(
        [
            op("ReduceMean", "x", "m", axes=[0]),
            op("Mul", "m little", "l"),
            op("Add", "x l", "y"),
        ],
        [value("x", (1, 4))],
        [value("y", (1, 4))],
        [constant("little", 5e-4)],
    )
    refused = pytest.raises(CheckFailedError, match="samples of a batch influence each other")
    with refused as caught:
        clean(proto, tmp_path, dynamic=BATCH, proof=ProofOptions(rtol=1e-4))
    error = re.search(r"an error of ([0-9.e-]+)", caught.value.message)
    assert error
    assert 1e-4 < float(error[1]) < 1e-3  # what multiplying in other blocks may explain elsewhere
    assert clean(proto, tmp_path, dynamic=BATCH, proof=ProofOptions(rtol=1e-3)).proof.max_error == 0


def test_a_source_that_mixes_samples_is_not_blamed_on_cleaning(tmp_path: Path) -> None:
    proto = model(
        [op("ReduceMean", "x", "m", axes=[0]), op("Sub", "x m", "y")],
        [value("x", ("batch", 4))],
        [value("y", ("batch", 4))],
    )
    result = clean(proto, tmp_path)
    assert result.proof.batch_independent is False
    assert "influence each other" in " ".join(result.notes)


def test_a_half_precision_file_keeps_its_types(tmp_path: Path) -> None:
    nodes = [
        op("Cast", "x", "h", to=FLOAT16),
        op("MatMul", "h w", "m"),
        op("Cast", "m", "f", to=1),
        op("Softmax", "f", "y"),
    ]
    weights = constant("w", random_array(8, 8), np.float16)
    proto = model(nodes, [value("x", ("N", 8))], [value("y", None)], [weights])
    result = clean(proto, tmp_path)
    assert result.proof.max_error == 0.0
    written = onnx.load(result.path)
    assert written.graph.initializer[0].data_type == FLOAT16


def test_quantization_survives(tmp_path: Path) -> None:
    nodes = [
        op("QuantizeLinear", "x s z", "q"),
        op("DequantizeLinear", "q s z", "d"),
        op("DequantizeLinear", "wq ws", "w"),
        op("MatMul", "d w", "y"),
    ]
    constants = [
        constant("s", 0.02),
        constant("z", 0, np.int8),
        constant("ws", 0.01),
        constant("wq", np.arange(-32, 32).reshape(8, 8), np.int8),
    ]
    result = clean(model(nodes, [value("x", ("N", 8))], [value("y", None)], constants), tmp_path)
    written = onnx.load(result.path)
    assert [node.op_type for node in written.graph.node] == [node.op_type for node in nodes]


def test_names_stay_and_repeated_ones_become_unique(tmp_path: Path) -> None:
    nodes = [op("Relu", "in:0", "h h", "same"), op("Neg", "h", "çà", "same")]
    nodes[0].output.pop()
    proto = model(nodes, [value("in:0", ("N", 4))], [value("çà", ("N", 4))])
    result = clean(proto, tmp_path)
    assert result.inputs[0].name == "in:0"
    assert result.outputs[0].name == "çà"
    names = [node.name for node in onnx.load(result.path).graph.node]
    assert names[0] == "same"
    assert len(set(names)) == 2
    assert result.proof.status == "proven", "against the file with other names: ORT refuses it"


def test_a_multiple_is_stated_recorded_and_respected(tmp_path: Path) -> None:
    nodes = [
        op("AveragePool", "x", "p", kernel_shape=[32, 32], strides=[32, 32]),
        op("Resize", "p - up", "u", mode="nearest"),
        op("Add", "u x", "y"),
    ]
    constants = [constant("up", [1.0, 1.0, 32.0, 32.0])]
    proto = model(nodes, [value("x", (1, 1, 64, 64))], [value("y", None)], constants)
    wanted = {"x": {2: "height", 3: "width"}}
    steps = {"height": 32, "width": 32}
    result = clean(proto, tmp_path, dynamic=wanted, multiples=steps)
    assert result.size_rules == tuple(SizeRule(s, 32, 32) for s in ("height", "width"))
    assert read_size_rules(load_model(result.path)) == result.size_rules


def test_an_unread_input_stays_and_is_named(tmp_path: Path) -> None:
    inputs = [value("x", ("N", 4)), value("meta", (1,), INT64)]
    result = clean(model([op("Relu", "x", "y")], inputs, [value("y", None)]), tmp_path)
    assert [spec.name for spec in result.inputs] == ["x", "meta"]
    assert result.notes == ("nothing reads the input 'meta'; it stays, because callers feed it",)


def test_the_source_is_never_written(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)])
    source = save(proto, tmp_path / "source.onnx")
    before = source.read_bytes()
    with pytest.raises(UsageError, match="belongs to the file"):
        clean_onnx(ExportRequest(str(source), tmp_path / "." / "source.onnx"))
    clean_onnx(ExportRequest(str(source), tmp_path / "clean.onnx"))
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clean.onnx", "source.onnx"]


def test_a_data_file_of_the_source_is_never_removed(tmp_path: Path) -> None:
    weights = constant("w", random_array(64, 64))
    proto = model([op("MatMul", "x w", "y")], [value("x", ("N", 64))], [value("y")], [weights])
    source = tmp_path / "source.onnx"
    onnx.save(proto, source, save_as_external_data=True, location="clean.onnx.data")
    with pytest.raises(UsageError, match=r"clean\.onnx\.data belongs to the file"):
        clean_onnx(ExportRequest(str(source), tmp_path / "clean.onnx"))
    assert (tmp_path / "clean.onnx.data").is_file()


def test_the_proof_can_be_left_out(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)])
    result = clean(proto, tmp_path, proof=ProofOptions(enabled=False))
    assert result.proof.status == "skipped"
    assert result.path.is_file()


@pytest.mark.parametrize(
    ("request_fields", "words"),
    [
        ({"dynamic": {"images": {0: "batch"}}}, "no input 'images'"),
        ({"dynamic": {"x": {7: "batch"}}}, "no axis 7"),
        ({"multiples": {"height": 32}}, "no dynamic axis 'height'"),
        ({"config": ("eval=1",)}, "no such setting"),
        ({"weights": Path("w.pt")}, "--weights"),
        ({"exporter": "torchscript"}, "--exporter"),
        ({"proof": ProofOptions(sizes={"heigt": (64,)})}, "--prove-at heigt: no such"),
        ({"proof": ProofOptions(sizes={"N": (33,)}), "multiples": {"N": 32}}, "multiples of 32"),
        ({"inputs": (InputSpec("x", DType.FLOAT32, (1, 5)),)}, "1x5"),
        ({"inputs": (InputSpec("x", DType.INT64, (1, 4)),)}, "int64"),
    ],
)
def test_a_request_that_does_not_fit_is_a_usage_error(
    tmp_path: Path, request_fields: dict[str, object], words: str
) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)])
    with pytest.raises(UsageError) as caught:
        clean(proto, tmp_path, **request_fields)
    assert words in caught.value.message


def test_an_opset_that_cannot_be_lowered_is_named(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)], opset=21)
    with pytest.raises(InputError, match=r"opset 21 .* cannot be lowered to 17"):
        clean(proto, tmp_path, opset=17)


def test_the_command_shows_what_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = save(reshaped([1, 216], batch=1), tmp_path / "source.onnx")
    target = tmp_path / "clean.onnx"
    arguments = ["export", str(source), "-o", str(target), "--dynamic", "x:0=batch"]
    assert run_command([*arguments, "--output", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["exporter"] == "cleaned"
    assert shown["inputs"][0]["shape"] == ["batch", 3, 8, 8]
    assert any("'fixed' takes the batch" in sentence for sentence in shown["changes"])
    reshape = find_node(onnx.load(target), "fixed")
    assert reshape.input[1] == "target_free"
