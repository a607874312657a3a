"""What a file says about its sizes, and sizes that nothing takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import ModelProto

from tests.builders import model, op, value
from tests.export.onnx.files import clean
from trtdeploy.core.errors import InputError, ModelFileError
from trtdeploy.core.tensors import SizeRule


def with_rule(proto: ModelProto, symbol: str, rule: str) -> ModelProto:
    proto.metadata_props.add(key="trtdeploy.sizes", value=f'{{"{symbol}": {rule}}}')
    return proto


def test_rules_follow_a_renamed_axis(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", "height"))], [value("y", None)])
    with_rule(proto, "height", '{"multiple_of": 32, "min": 64, "max": 512}')
    result = clean(proto, tmp_path, dynamic={"x": {1: "h"}})
    assert result.size_rules == (SizeRule("h", 32, 64, 512),)
    assert all(point.sizes["h"] % 32 == 0 for point in result.proof.points)


def test_axes_that_become_one_obey_both_rules(tmp_path: Path) -> None:
    inputs = [value("x", ("N", "a")), value("z", ("N", "b"))]
    proto = model([op("Relu", "x", "y"), op("Neg", "z", "v")], inputs, [value("y"), value("v")])
    rules = {"a": {"multiple_of": 4, "max": 100}, "b": {"multiple_of": 6, "min": 30}}
    proto.metadata_props.add(key="trtdeploy.sizes", value=json.dumps(rules))
    result = clean(proto, tmp_path, dynamic={"x": {1: "s"}, "z": {1: "s"}})
    assert result.size_rules == (SizeRule("s", 12, 30, 100),)


def test_a_stated_multiple_keeps_the_limit_of_the_file(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", "height"))], [value("y", None)])
    with_rule(proto, "height", '{"max": 512}')
    result = clean(proto, tmp_path, multiples={"height": 32})
    assert result.size_rules == (SizeRule("height", 32, 32, 512),)


def test_an_impossible_step_in_the_metadata_is_refused(tmp_path: Path) -> None:
    proto = model([op("Relu", "x", "y")], [value("x", ("N", 4))], [value("y", None)])
    with_rule(proto, "N", f'{{"multiple_of": {10**22}}}')
    with pytest.raises(ModelFileError, match=r"trtdeploy\.sizes"):
        clean(proto, tmp_path)


def test_an_input_that_fills_the_memory_is_named(tmp_path: Path) -> None:
    inputs = [value("x", (1, 3, 1_000_000, 1_000_000))]
    proto = model([op("Relu", "x", "y")], inputs, [value("y", None)])
    with pytest.raises(InputError, match=r"'x' of 1x3x1000000x1000000 float32 takes 11176 GiB"):
        clean(proto, tmp_path)
