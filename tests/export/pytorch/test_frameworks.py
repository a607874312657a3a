"""Adapters on the real packages, each skipped where its package is not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

IMAGES = ("batch", 3, "height", "width")


def export(folder: Path, source: str, **fields: Any) -> ExportResult:
    return export_model(ExportRequest(source, folder / "m.onnx", **fields))


def test_torchvision(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    result = export(tmp_path, "torchvision:shufflenet_v2_x0_5")
    assert result.inputs[0].shape == IMAGES
    assert result.outputs[0].shape == ("batch", 1000)
    assert any("random weights" in note for note in result.notes)


def test_torchvision_names_and_settings(tmp_path: Path) -> None:
    pytest.importorskip("torchvision")
    with pytest.raises(UsageError, match="no model 'resnet51'") as caught:
        export(tmp_path, "torchvision:resnet51")
    assert "resnet50" in caught.value.hint
    with pytest.raises(InputError, match="classes"):
        export(tmp_path, "torchvision:resnet18", config=("classes=3",))


def test_timm_fixed_and_free_images(tmp_path: Path) -> None:
    pytest.importorskip("timm")
    small = "depth=1,num_classes=7"
    fixed = export(tmp_path, "timm:vit_tiny_patch16_224", config=(small,))
    assert fixed.inputs[0].shape == ("batch", 3, 224, 224)
    assert fixed.outputs[0].shape == ("batch", 7)
    assert any("stay fixed at 224" in note for note in fixed.notes)
    settings = (small, "dynamic_img_size=true")
    free = export(tmp_path, "timm:vit_tiny_patch16_224", config=settings)
    assert free.inputs[0].shape == IMAGES
    assert {rule.symbol: rule.multiple_of for rule in free.size_rules} == {
        "height": 16, "width": 16,
    }  # fmt: skip


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        vocab_size=40, max_position_embeddings=64,
    )  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def test_transformers_folder(bert: Path, tmp_path: Path) -> None:
    result = export(tmp_path, f"transformers:{bert}")
    found = {spec.name: spec.shape for spec in (*result.inputs, *result.outputs)}
    assert found == {
        "input_ids": ("batch", "sequence"),
        "attention_mask": ("batch", "sequence"),
        "last_hidden_state": ("batch", "sequence", 16),
        "pooler_output": ("batch", 16),
    }
    assert result.size_rules == (SizeRule("sequence", max=64),)


def test_a_config_of_something_else_is_replaced_by_settings(bert: Path, tmp_path: Path) -> None:
    (bert / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    with pytest.raises(InputError, match="names no model_type"):
        export(tmp_path, f"transformers:{bert}")
    sizes = "hidden_size=16,num_attention_heads=2,intermediate_size=24,vocab_size=40"
    common = f"model_type=bert,max_position_embeddings=64,{sizes}"
    with pytest.raises(InputError, match=r"lacks 16 weights .* stay random: encoder.layer.2"):
        export(tmp_path, f"transformers:{bert}", config=(f"{common},num_hidden_layers=3",))
    settings = common.replace("vocab_size=40", "vocab_size=41")
    with pytest.raises(InputError, match="another shape"):
        export(tmp_path, f"transformers:{bert}", config=(f"{settings},num_hidden_layers=2",))
    result = export(tmp_path, f"transformers:{bert}", config=(f"{common},num_hidden_layers=2",))
    assert result.proof.status == "proven"


def test_a_transformers_name_is_not_fetched_unless_asked(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match="on this machine") as caught:
        export(tmp_path, "transformers:nobody/such-model")
    assert "--download" in caught.value.hint


@pytest.mark.slow
def test_ultralytics(tmp_path: Path) -> None:
    pytest.importorskip("ultralytics")
    result = export(tmp_path, "yolov8n.yaml")
    assert [spec.name for spec in result.inputs] == ["images"]
    assert result.inputs[0].shape == IMAGES
    assert result.outputs[0].shape[:2] == ("batch", 84)
    assert {rule.multiple_of for rule in result.size_rules} == {32}
    with pytest.raises(InputError, match="does not exist here"):
        export(tmp_path, "yolov8x-absent.pt")
