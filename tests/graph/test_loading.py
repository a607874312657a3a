from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tests.builders import (
    FLOAT,
    FLOAT16,
    branch_model,
    chain,
    constant,
    graph,
    loaded,
    model,
    op,
    random_array,
    save,
    value,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.errors import ModelFileError, TrtdeployError
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.stored_tensors import INLINE_BYTES
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

LARGE = INLINE_BYTES // 4 + 1


def assert_same(left: ModelProto, right: ModelProto) -> None:
    """Compare models; the order of initializers and the field that holds their data are free."""
    assert contents(left) == contents(right)
    assert structure(left) == structure(right)


def contents(proto: ModelProto) -> dict[str, tuple[object, ...]]:
    return {
        t.name: (list(t.dims), t.data_type, t.doc_string, numpy_helper.to_array(t).tolist())
        for t in proto.graph.initializer
    }


def structure(proto: ModelProto) -> bytes:
    copied = ModelProto()
    copied.CopyFrom(proto)
    del copied.graph.initializer[:]
    return copied.SerializeToString(deterministic=True)


def round_trip(proto: ModelProto, folder: Path) -> ModelProto:
    save_model(loaded(proto, folder), folder / "saved.onnx")
    return onnx.load(folder / "saved.onnx")


def reading(tensor: TensorProto) -> ModelProto:
    """Make a model with ``tensor`` as an initializer that is also an output."""
    return model([], [], [value(tensor.name, tensor.dims, tensor.data_type)], [tensor])


@pytest.mark.parametrize(
    "tensor",
    [
        constant("raw_small", random_array(3)),
        constant("raw_large", random_array(LARGE)),
        constant("raw_at_the_border", random_array(LARGE - 1)),
        constant("scalar", 3.5),
        constant("empty", np.zeros((0, 4))),
        helper.make_tensor("float_data", FLOAT, [LARGE], random_array(LARGE)),
        helper.make_tensor("int32_data", FLOAT16, [2000], np.arange(2000, dtype=np.float16)),
        helper.make_tensor("int64_data", TensorProto.INT64, [3], [1, -2, 1 << 40]),
        helper.make_tensor("double_data", TensorProto.DOUBLE, [2], [1e300, 2]),
        helper.make_tensor("uint64_data", TensorProto.UINT64, [2], [1, 1 << 60]),
        helper.make_tensor("bool_data", TensorProto.BOOL, [2], [True, False]),
        helper.make_tensor("strings", TensorProto.STRING, [2], [b"cat", "画像".encode()]),
        helper.make_tensor("four_bits", TensorProto.INT4, [3], [1, -2, 3]),
        constant("int8_large", np.arange(6000) % 100, np.int8),
    ],
    ids=lambda t: t.name,
)
def test_every_way_to_store_a_tensor_survives(tensor: TensorProto, tmp_path: Path) -> None:
    proto = reading(tensor)
    assert_same(round_trip(proto, tmp_path), proto)


def test_everything_around_the_graph_survives(tmp_path: Path) -> None:
    proto = chain(["Relu", "MatMul:w"], constants=[constant("w", random_array(4, LARGE))])
    helper.set_model_props(proto, {"stride": "32", "names": "{0: 'Katze'}"})
    proto.producer_name, proto.model_version, proto.doc_string = "tests", 7, "words"
    proto.graph.doc_string = "more words"
    proto.graph.node[0].metadata_props.add(key="layer", value="first")
    proto.functions.append(
        helper.make_function("local", "Twice", ["a"], ["b"], [op("Add", "a a", "b")], [])
    )
    proto.training_info.add().algorithm.name = "sgd"
    assert_same(round_trip(proto, tmp_path), proto)


def test_unknown_fields_survive(tmp_path: Path) -> None:
    tag = b"\xba\x3e\x05later"  # field 999, length-delimited: of a future ONNX
    proto = chain(["MatMul:w"], constants=[constant("w", random_array(4, LARGE))])
    path = save(proto, tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes() + tag)
    save_model(load_model(path), tmp_path / "saved.onnx")
    assert tag in (tmp_path / "saved.onnx").read_bytes()


def test_large_weights_of_nested_graphs_survive(tmp_path: Path) -> None:
    proto = branch_model(
        [op("MatMul", "x w", "t")],
        [op("Identity", "x", "e")],
        inner_constants=([constant("w", random_array(4, LARGE))], []),
    )
    assert_same(round_trip(proto, tmp_path), proto)


def test_a_graph_in_two_pieces_is_merged_as_protobuf_does(tmp_path: Path) -> None:
    first = model([], [], [], [constant("w", random_array(LARGE))])
    second = chain(["Relu"])
    path = tmp_path / "model.onnx"
    path.write_bytes(first.SerializeToString() + second.SerializeToString())
    save_model(load_model(path), tmp_path / "saved.onnx")
    assert_same(onnx.load(tmp_path / "saved.onnx"), onnx.load(path))


def test_large_weights_stay_on_the_disk(tmp_path: Path) -> None:
    large, small = constant("large", random_array(LARGE)), constant("small", random_array(8))
    found = loaded(model([], [], [value("large", [LARGE])], [large, small]), tmp_path)
    assert set(found.weights) == {"large"}
    assert found.weight_bytes == LARGE * 4
    assert found.proto.ByteSize() < 300
    assert not found.graph.initializer[0].raw_data
    assert np.concatenate(list(found.weights["large"].iterate_arrays())).tobytes() == large.raw_data


def test_loading_reads_no_weights(tmp_path: Path) -> None:
    """A hole of 3 GiB in the middle of the file is neither read nor touched."""
    proto = chain(["Relu"])
    dims = [3 << 30]
    header = TensorProto(name="hole", data_type=TensorProto.INT8, dims=dims).SerializeToString()
    path = tmp_path / "model.onnx"
    data = tmp_path / "hole.bin"
    with data.open("wb") as file:
        file.truncate(dims[0])
    tensor = proto.graph.initializer.add()
    tensor.MergeFromString(header)
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="hole.bin")
    found = load_model(save(proto, path))
    assert found.weights["hole"].stored_bytes == dims[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"this is a text file\n" * 50, "is not an ONNX model"),
        (b"PK\x03\x04" + bytes(60), "is not an ONNX model"),
        (b"\x08\x08", "holds no graph"),
        (chain(["Relu"]).SerializeToString()[:-40], "is not an ONNX model, or it is damaged"),
        (onnx.ModelProto(ir_version=8, graph=graph([], [], [])).SerializeToString(), "no graph"),
    ],
    ids=["empty", "text", "zip", "no_graph", "cut", "nothing_in_the_graph"],
)
def test_what_is_no_model_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as info:
        load_model(path)
    assert str(path) in info.value.message


def test_a_folder_a_pipe_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is a folder"):
        load_model(tmp_path)
    with pytest.raises(ModelFileError, match="not a regular file"):
        load_model(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="cannot be read: No such file"):
        load_model(tmp_path / "missing.onnx")
    with pytest.raises(ModelFileError, match="cannot be read: File name too long"):
        load_model(tmp_path / ("long" * 100))


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = save(chain(["Relu"]), tmp_path / "model.onnx")
    path.chmod(0)
    with pytest.raises(ModelFileError, match="cannot be read: Permission denied"):
        load_model(path)


def test_a_name_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = save(chain(["Relu"]), tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes().replace(b"Relu", b"Re\xff\xfe"))
    with pytest.raises(ModelFileError, match="not text in UTF-8"):
        load_model(path)


@pytest.mark.parametrize("elements", [10, LARGE])
def test_two_initializers_of_one_name_are_refused(elements: int, tmp_path: Path) -> None:
    twice = [constant("w", random_array(elements)), constant("w", random_array(elements))]
    with pytest.raises(ModelFileError, match="two initializers are named 'w'"):
        loaded(model([], [], [value("w", [elements])], twice), tmp_path)


def spoiled(dims: list[int], **fields: object) -> TensorProto:
    return TensorProto(name="w", data_type=FLOAT, dims=dims, **fields)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (spoiled([3], raw_data=bytes(8)), "should hold 12 bytes .* but holds 8"),
        (spoiled([LARGE], raw_data=bytes(4 * LARGE + 4)), "should hold 4100 bytes"),
        (spoiled([3], float_data=[1.0]), "should hold 3 values .* but holds 1"),
        (spoiled([3]), "should hold 3 values .* but holds 0"),
        (spoiled([-3], raw_data=bytes(12)), "negative dimension"),
        (spoiled([1 << 40, 1 << 40], raw_data=bytes(8)), "but holds 8"),
        (
            TensorProto(name="w", data_type=TensorProto.FLOAT8E4M3FN, dims=[3], int32_data=[56]),
            "should hold 3 values .* but holds 1",
        ),
        (TensorProto(name="w", data_type=99, dims=[1], raw_data=b"x"), "raw data, which its type"),
    ],
    ids=["small_raw", "large_raw", "values", "no_data", "negative", "huge", "fp8", "unknown_type"],
)
def test_data_that_does_not_fit_the_shape_is_refused(
    tensor: TensorProto, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        loaded(model([], [], [value("w", None)], [tensor]), tmp_path)


def test_a_constant_node_with_damaged_data_is_refused(tmp_path: Path) -> None:
    proto = model([op("Constant", "", "c", value=spoiled([3]))], [], [value("c", [3])])
    with pytest.raises(ModelFileError, match="should hold 3 values"):
        loaded(proto, tmp_path)


def whole_file() -> bytes:
    weight = constant("w", random_array(4, LARGE))
    proto = chain(["Relu", "MatMul:w", "Cast:"], constants=[weight, constant("s", [1, 2])])
    proto.graph.node[-1].attribute.append(helper.make_attribute("to", FLOAT))
    helper.set_model_props(proto, {"stride": "32"})
    return proto.SerializeToString()


def load_and_type(path: Path) -> None:
    """Do what a build does; nothing but our own errors may come out."""
    try:
        typed = apply_recipe(load_model(path), TypingOptions(RECIPES["fp16"]))
        save_model(typed.model, path.with_name("typed.onnx"))
    except TrtdeployError:
        return


def test_a_file_cut_at_any_place_is_a_model_or_an_error(tmp_path: Path) -> None:
    data = whole_file()
    assert len(data) > 4 * LARGE
    path = tmp_path / "cut.onnx"
    structure_ends = [*range(420), *range(len(data) - 200, len(data))]
    for end in [*structure_ends, *range(420, len(data), 997)]:
        path.write_bytes(data[:end])
        load_and_type(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.data())
def test_wrong_bytes_are_a_model_or_an_error(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(whole_file())
    places = st.one_of(st.integers(0, 420), st.integers(len(content) - 200, len(content) - 1))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(places)] = data.draw(st.integers(0, 255))
    path = tmp_path / "wrong.onnx"
    path.write_bytes(content)
    load_and_type(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(st.binary(min_size=1, max_size=300))
def test_random_bytes_are_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "random.onnx"
    path.write_bytes(data)
    load_and_type(path)
