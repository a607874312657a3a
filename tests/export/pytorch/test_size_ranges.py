"""Rules say which sizes a file takes; inputs are tied where they have to be."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trtdeploy.core.errors import CheckFailedError, InputError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.arguments import parse_input_argument
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import Exporter, ExportRequest, ProofOptions
from trtdeploy.export.result import ExportResult

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'"
)
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

MODULES = "tests.export.pytorch.ranged_modules"


def export(folder: Path, name: str, *inputs: str, **fields: Any) -> ExportResult:
    request = ExportRequest(
        source=name if ":" in name else f"{MODULES}:{name}",
        output=folder / "m.onnx",
        inputs=tuple(map(parse_input_argument, inputs)),
    )
    return export_model(replace(request, **fields))


@pytest.mark.parametrize(("size", "proven"), [(5, True), (1, True), (5, False)])
def test_a_size_of_one_that_the_model_treats_otherwise_is_left_out(
    tmp_path: Path, size: int, proven: bool
) -> None:
    options = ProofOptions(enabled=proven)
    result = export(tmp_path, "SpecialOne", f"x:float32:2x{size}x8", proof=options)
    assert result.size_rules == (SizeRule("sequence", min=2),)


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_the_smallest_size_is_found_for_either_exporter(tmp_path: Path, exporter: Exporter) -> None:
    result = export(tmp_path, "Shrinking", "x:float32:2x3x16x20", exporter=exporter)
    assert result.size_rules == (SizeRule("height", min=7), SizeRule("width", min=7))


def test_a_baked_size_is_refused_and_not_made_a_rule(tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match="sequence"):
        export(tmp_path, "Baked", "ids:int64:2x8", exporter="torchscript")


def test_only_sizes_that_agree_are_tied(tmp_path: Path) -> None:
    result = export(tmp_path, "Anchored", "x:float32:2x3x8x8", "anchors:float32:4x2")
    shapes = {spec.name: spec.shape for spec in result.inputs}
    assert shapes == {"x": ("batch", 3, "height", "width"), "anchors": ("anchors_0", 2)}


def test_a_size_of_one_beside_a_batch_stays(tmp_path: Path) -> None:
    result = export(tmp_path, "KeywordOnly", "x:float32:2x4", "mask:float32:1x4")
    assert [spec.shape for spec in result.inputs] == [("batch", 4), (1, 4)]


def test_keyword_only_parameters_are_inputs(tmp_path: Path) -> None:
    result = export(tmp_path, "KeywordOnly", "x:float32:2x4", "mask:float32:2x4")
    assert [spec.name for spec in result.inputs] == ["x", "mask"]


@pytest.fixture
def clean_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("sibling", "maker", "_source_copy"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_factory_that_fails_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"KeyError: 'depth' \(ranged_modules\.py line \d+"):
        export(tmp_path, "broken")


@pytest.mark.usefixtures("clean_imports")
def test_a_file_imports_what_lies_beside_it_and_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "sibling.py").write_text("import torch\nModel = torch.nn.Identity\n")
    text = "import sibling\nimport torch\ndef make(): return sibling.Model(), torch.ones(2, 3)\n"
    (tmp_path / "copy.py").write_text(text)
    before = sys.modules["copy"]
    result = export(tmp_path, f"{tmp_path / 'copy.py'}:make")
    assert result.proof.status == "proven"
    assert sys.modules["copy"] is before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"absent\.py does not exist"):
        export(tmp_path, f"{tmp_path / 'absent.py'}:make")


def test_the_end_of_a_table_is_found_though_nothing_checks_it(tmp_path: Path) -> None:
    result = export(tmp_path, "Positions", "ids:int64:2x5")
    assert result.size_rules == (SizeRule("sequence", max=16),)


def test_an_axis_that_nobody_asked_for_and_that_cannot_vary_stays(tmp_path: Path) -> None:
    result = export(tmp_path, "Looping", "x:float32:2x4")
    assert result.inputs[0].shape == (2, 4)
    assert any(note.startswith("batch stays fixed at 2: the model's") for note in result.notes)
    with pytest.raises(InputError, match="'batch' is asked to vary"):
        export(tmp_path, "Looping", "x:float32:2x4", dynamic={"x": {0: "batch"}})


def test_an_axis_with_one_size_does_not_vary(tmp_path: Path) -> None:
    result = export(tmp_path, "EightByEight", "x:float32:2x3x8x8")
    assert result.inputs[0].shape == ("batch", 3, 8, 8)
    asked = {"x": {0: "batch", 2: "height"}}
    with pytest.raises(InputError, match="'height' is asked to vary"):
        export(tmp_path, "EightByEight", "x:float32:2x3x8x8", dynamic=asked)


def test_a_condition_of_the_exporter_alone_sets_no_minimum(tmp_path: Path) -> None:
    result = export(tmp_path, "Patches", "x:float32:2x3x32x32")
    assert result.size_rules == (SizeRule("height", 8, 8), SizeRule("width", 8, 8))


def test_an_n_beside_a_batch_is_none(tmp_path: Path) -> None:
    dynamic = {"points": {0: "b", 1: "n"}}
    result = export(tmp_path, "Points", "points:float32:2x6x3", dynamic=dynamic)
    assert result.outputs[0].shape == ("b", "n", "n")
    assert result.proof.batch_independent is True
    assert all(point.sizes["b"] != point.sizes["n"] for point in result.proof.points)
