from __future__ import annotations

from pathlib import Path

import onnx
from onnx import numpy_helper

from tests.building.models import save_convnet
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.graph.structure import has_same_structure
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions


def test_weights_do_not_matter_and_nodes_do(tmp_path: Path) -> None:
    first = load_model(save_convnet(tmp_path / "a.onnx"))
    assert has_same_structure(first, load_model(save_convnet(tmp_path / "b.onnx", seed=1)))
    proto = onnx.load(tmp_path / "b.onnx")
    proto.graph.node[1].op_type = "Sigmoid"
    onnx.save(proto, tmp_path / "c.onnx")
    assert not has_same_structure(first, load_model(tmp_path / "c.onnx"))
    proto = onnx.load(tmp_path / "b.onnx")
    wide = numpy_helper.to_array(proto.graph.initializer[0]).astype("float64")
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(wide, "w"))
    onnx.save(proto, tmp_path / "d.onnx")
    assert not has_same_structure(first, load_model(tmp_path / "d.onnx"))


def test_a_typed_model_and_its_file_are_the_same(tmp_path: Path) -> None:
    typed = apply_recipe(
        load_model(save_convnet(tmp_path / "a.onnx")), TypingOptions(RECIPES["fp16"])
    ).model
    save_model(typed, tmp_path / "typed.onnx")
    assert has_same_structure(typed, load_model(tmp_path / "typed.onnx"))
