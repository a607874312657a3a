from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from tests.builders import (
    FLOAT,
    branch_model,
    external_tensor,
    model,
    op,
    random_array,
    save,
    value,
)
from trtdeploy.core.errors import ModelFileError
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.saving import save_model

WEIGHT = random_array(40, 60)


def external_model(**entries: object) -> ModelProto:
    """Make ``y = x @ w``, ``w`` of 40 x 60 floats being external."""
    return model(
        [op("MatMul", "x w", "y")],
        [value("x", ("N", 40))],
        [value("y", ("N", 60))],
        [external_tensor("w", [40, 60], **entries)],
    )


def load_beside(folder: Path, **entries: object) -> OnnxModel:
    return load_model(save(external_model(**entries), folder / "model.onnx"))


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "weights" / "w.bin"
    path.parent.mkdir()
    path.write_bytes(b"8 bytes." + WEIGHT.tobytes() + b"more")
    return path


def values_of(path: Path) -> np.ndarray:
    return numpy_helper.to_array(onnx.load(path).graph.initializer[0])


def test_data_in_a_subfolder_is_found(tmp_path: Path, data_file: Path) -> None:
    found = load_beside(tmp_path, location="weights/w.bin", offset=8, length=WEIGHT.nbytes)
    assert found.weights["w"].span.path == data_file.resolve()
    save_model(found, tmp_path / "saved.onnx")
    assert np.array_equal(values_of(tmp_path / "saved.onnx"), WEIGHT)


def test_the_length_may_be_missing(tmp_path: Path, data_file: Path) -> None:
    found = load_beside(tmp_path, location="weights/w.bin", offset=8)
    assert found.weights["w"].span.length == WEIGHT.nbytes


def test_the_result_needs_nothing_of_the_source(
    tmp_path: Path, data_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Type from another working directory, move the result, delete the source, load."""
    sources = [save(external_model(location="weights/w.bin", offset=8), tmp_path / "m.onnx")]
    sources.append(data_file)
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sources]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "out").mkdir()
    save_model(load_model(Path("../m.onnx")), tmp_path / "out" / "m.onnx", single_file_bytes=0)
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in sources] == before
    for path in sources:
        path.unlink()
    (tmp_path / "out").rename(tmp_path / "moved")
    assert np.array_equal(values_of(tmp_path / "moved" / "m.onnx"), WEIGHT)
    assert {path.name for path in (tmp_path / "moved").iterdir()} == {"m.onnx", "m.onnx.data"}


@pytest.mark.parametrize(
    "location",
    [
        "/etc/passwd",
        "../secret.bin",
        "weights/../../secret.bin",
        "..\\secret.bin",
        "",
        "weights/w.bin\0",
        ".",
    ],
)
def test_a_location_outside_the_folder_is_refused(
    location: str, tmp_path: Path, data_file: Path
) -> None:
    (tmp_path.parent / "secret.bin").write_bytes(WEIGHT.tobytes())
    with pytest.raises(ModelFileError, match=r"outside the model's folder|not a file"):
        load_beside(tmp_path, location=location)


@pytest.mark.parametrize("through_a_folder", [False, True])
def test_a_link_that_leaves_the_folder_is_refused(through_a_folder: bool, tmp_path: Path) -> None:
    inside = tmp_path / "model"
    inside.mkdir()
    (tmp_path / "secret.bin").write_bytes(WEIGHT.tobytes())
    if through_a_folder:
        (inside / "linked").symlink_to(tmp_path)
        location = "linked/secret.bin"
    else:
        (inside / "linked.bin").symlink_to(tmp_path / "secret.bin")
        location = "linked.bin"
    with pytest.raises(ModelFileError, match="outside the model's folder"):
        load_beside(inside, location=location)


def test_a_link_inside_the_folder_is_followed(tmp_path: Path, data_file: Path) -> None:
    (tmp_path / "linked.bin").symlink_to(data_file)
    assert load_beside(tmp_path, location="linked.bin", offset=8).weights["w"]


def test_the_model_itself_may_lie_behind_a_link(tmp_path: Path, data_file: Path) -> None:
    load_beside(tmp_path, location="weights/w.bin", offset=8)
    (tmp_path / "link").symlink_to(tmp_path)
    assert load_model(tmp_path / "link" / "model.onnx").weights["w"]


def test_folders_pipes_and_missing_files_are_refused(tmp_path: Path, data_file: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="is not a file"):
        load_beside(tmp_path, location="weights")
    with pytest.raises(ModelFileError, match="is not a file"):
        load_beside(tmp_path, location="pipe")
    with pytest.raises(ModelFileError, match="cannot be read: No such file") as info:
        load_beside(tmp_path, location="weights/gone.bin")
    assert "weights/gone.bin" in info.value.hint


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"offset": 16}, r"needs bytes 16 to 9616 of 'weights/w.bin', which has only 9612"),
        ({"offset": 1 << 60}, "which has only 9612"),
        ({"offset": -8}, "which has only 9612"),
        ({"length": 9596}, "should hold 9600 bytes .* says 9596"),
        ({"length": 9604}, "should hold 9600 bytes .* says 9604"),
        ({"length": -1}, "should hold 9600 bytes .* says -1"),
        ({"offset": "eight"}, "offset or length is not a number"),
    ],
)
def test_entries_that_do_not_fit_are_refused(
    entries: dict[str, object], message: str, tmp_path: Path, data_file: Path
) -> None:
    with pytest.raises(ModelFileError, match=message):
        load_beside(tmp_path, location="weights/w.bin", **entries)


def test_strings_cannot_lie_outside(tmp_path: Path, data_file: Path) -> None:
    tensor = external_tensor("w", [2], TensorProto.STRING, location="weights/w.bin")
    with pytest.raises(ModelFileError, match="which its type"):
        load_model(save(model([], [], [value("w", [2])], [tensor]), tmp_path / "model.onnx"))


def test_external_tensors_of_nested_graphs_and_attributes_are_read(
    tmp_path: Path, data_file: Path
) -> None:
    entries = {"location": "weights/w.bin", "offset": 8}
    proto = branch_model(
        [op("MatMul", "x w", "t")],
        [op("Constant", "", "c", value=external_tensor("", [4], **entries)), op("Add", "x c", "e")],
        inner_constants=([external_tensor("w", [4, 4], **entries)], []),
    )
    found = load_model(save(proto, tmp_path / "model.onnx"))
    branches = {a.name: a.g for a in found.graph.node[0].attribute}
    constant_node = branches["else_branch"].node[0]
    inlined = [branches["then_branch"].initializer[0], constant_node.attribute[0].t]
    for tensor, elements in zip(inlined, (16, 4), strict=True):
        assert tensor.data_location == TensorProto.DEFAULT
        assert np.array_equal(numpy_helper.to_array(tensor).ravel(), WEIGHT.ravel()[:elements])


def test_a_small_external_tensor_moves_into_the_structure(tmp_path: Path, data_file: Path) -> None:
    tensor = external_tensor("w", [4], FLOAT, location="weights/w.bin", offset=8)
    found = load_model(save(model([], [], [value("w", [4])], [tensor]), tmp_path / "model.onnx"))
    assert not found.weights
    assert np.array_equal(numpy_helper.to_array(found.graph.initializer[0]), WEIGHT.ravel()[:4])


def test_a_location_that_is_not_text_is_refused(tmp_path: Path, data_file: Path) -> None:
    path = save(external_model(location="weights/w.bin"), tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes().replace(b"weights/w.bin", b"weights/\xff\xfebin"))
    with pytest.raises(ModelFileError, match="cannot be read"):
        load_model(path)
