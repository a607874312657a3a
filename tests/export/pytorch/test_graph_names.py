"""Names, shapes and pins of an exported graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from onnx import NodeProto

from tests.builders import constant, in_memory, model, op, random_array, value
from trtdeploy.core.errors import InputError
from trtdeploy.export.fp32_regions import Fp32Region, compress_names, find_pins, find_region
from trtdeploy.export.pytorch.graph_names import (
    declare_inputs,
    name_nodes_by_module,
    rename_weights,
    strip_origins,
)
from trtdeploy.graph.model import OnnxModel


def traced(node: NodeProto, scopes: str, *frames: str) -> NodeProto:
    node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=scopes)
    node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value="\n".join(frames))
    return node


def make_model() -> OnnxModel:
    nodes = [
        traced(op("Relu", "x", "a"), "['', 'trtdeploy_model', 'trtdeploy_model.body.0', 'relu']",
               'File "/home/me/net.py", line 4, in forward'),
        traced(op("Add", "a trtdeploy_model.w", "b"), "['', 'trtdeploy_model.body.0', 'add']",
               'File "/home/me/net.py", line 9, in forward'),
        traced(op("Mul", "b b", "c"), "['', 'trtdeploy_model', 'mul']",
               'File "/home/me/net.py", line 10, in forward'),
        op("Relu", "c", "y", "/trtdeploy_model/head/head.1/Relu"),
    ]  # fmt: skip
    weights = [constant("trtdeploy_model.w", random_array(4))]
    return in_memory(model(nodes, [value("x", ("s77", 4))], [value("y", ("s77", 4))], weights))


def test_nodes_and_weights_are_called_after_modules() -> None:
    edited = make_model()
    name_nodes_by_module(edited)
    rename_weights(edited)
    names = [node.name for node in edited.graph.node]
    assert names == ["/body/0/Relu", "/body/0/Add", "/Mul", "/head/1/Relu"]
    assert edited.graph.node[1].input[1] == edited.graph.initializer[0].name == "w"


def test_no_path_of_the_machine_stays_in_the_file() -> None:
    edited = make_model()
    edited.graph.node[0].doc_string = "/home/me/net.py(4): forward"
    edited.graph.value_info.append(value("a", ("(s77//2)+1", 4)))
    strip_origins(edited)
    assert b"/home/me" not in edited.proto.SerializeToString()
    assert b"s77//2" not in edited.proto.SerializeToString()


def test_inputs_get_the_users_symbols() -> None:
    edited = make_model()
    declare_inputs(edited, {"x": {0: "batch"}})
    assert edited.input_specs()[0].shape == ("batch", 4)


def test_an_axis_that_the_exporter_fixed_is_an_error() -> None:
    with pytest.raises(InputError, match=r"'features' \(axis 1 of 'x'\).*fixed it to 4"):
        declare_inputs(make_model(), {"x": {1: "features"}})


SOURCE = """\
def forward(x):
    y = x * 2
    with autocast(
        enabled=False
    ):
        z = y + 1
        y = z * z
    return y
"""


def test_a_with_block_is_a_region_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SOURCE)
    assert find_region("m", str(path), 3) == Fp32Region("m", str(path), 3, 7)
    assert find_region("m", str(path), 8) == Fp32Region("m", str(path), 8, 8)
    assert find_region("m", str(tmp_path / "gone.py"), 3) == Fp32Region("m")


def test_pins_are_the_nodes_of_the_lines() -> None:
    edited = make_model()
    name_nodes_by_module(edited)
    region = Fp32Region("", "/home/me/net.py", 9, 10)
    assert find_pins(edited, [region]) == (("/body/0/Add", "/Mul"), [])
    elsewhere = Fp32Region("", "/home/me/net.py", 90, 91)
    assert find_pins(edited, [elsewhere]) == (
        (),
        ["the FP32 block in the model left no node: nothing to pin"],
    )


def test_without_lines_the_module_is_pinned() -> None:
    edited = make_model()
    name_nodes_by_module(edited)
    assert find_pins(edited, [Fp32Region("body")]) == (("/body/*",), [])


def test_whole_folders_become_one_pattern() -> None:
    names = ["/a/b/X", "/a/b/Y", "/a/c/X", "/d/X", "/d/Y"]
    assert compress_names({"/a/b/X", "/a/b/Y", "/d/X"}, names) == ["/a/b/*", "/d/X"]
    assert compress_names({"/a/b/X", "/a/b/Y", "/a/c/X"}, names) == ["/a/*"]
