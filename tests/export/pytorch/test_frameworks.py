"""Adapters on the real packages, each skipped where its package is not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.arguments import parse_input_argument
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


def test_code_in_a_model_folder_is_not_run(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    folder = tmp_path / "own"
    folder.mkdir()
    config = {"model_type": "own", "auto_map": {"AutoConfig": "code.C", "AutoModel": "code.M"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "code.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with pytest.raises(InputError, match="code of its own, which is not run") as caught:
        export(tmp_path, f"transformers:{folder}")
    assert "FILE.py:make" in caught.value.hint
    assert not (tmp_path / "ran").exists()


def test_an_architecture_that_is_no_model_is_not_used(bert: Path, tmp_path: Path) -> None:
    config = json.loads((bert / "config.json").read_text())
    (bert / "config.json").write_text(json.dumps({**config, "architectures": ["AutoTokenizer"]}))
    assert export(tmp_path, f"transformers:{bert}").proof.status == "proven"


def test_layers_without_a_place_are_refused_and_other_weights_noted(
    bert: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"16 weights of layers .* lacks: encoder\.layer\.1"):
        export(tmp_path, f"transformers:{bert}", config=("num_hidden_layers=1",))
    torch, safetensors = pytest.importorskip("torch"), pytest.importorskip("safetensors.torch")
    state = safetensors.load_file(bert / "model.safetensors")
    state["cls.bias"] = torch.zeros(3)
    safetensors.save_file(state, bert / "model.safetensors", metadata={"format": "pt"})
    result = export(tmp_path, f"transformers:{bert}")
    assert any("no place in BertModel: cls.bias" in note for note in result.notes)


@pytest.mark.parametrize("extra", ["", "model_type=bert,"])
def test_an_unknown_setting_is_a_usage_error(bert: Path, tmp_path: Path, extra: str) -> None:
    if extra:
        (bert / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="num_hidden_layer: a bert model") as caught:
        export(tmp_path, f"transformers:{bert}", config=(f"{extra}num_hidden_layer=2",))
    assert "'num_hidden_layers'" in caught.value.hint


def test_damaged_weights_of_a_folder_are_an_error(bert: Path, tmp_path: Path) -> None:
    (bert / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match="cannot load the weights"):
        export(tmp_path, f"transformers:{bert}")


def test_one_input_of_two_can_be_given(bert: Path, tmp_path: Path) -> None:
    inputs = (parse_input_argument("input_ids:int64:2x16"),)
    result = export(tmp_path, f"transformers:{bert}", inputs=inputs)
    assert [spec.shape for spec in result.inputs] == [("batch", "sequence")]


def test_positions_that_padding_takes_are_not_counted(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.RobertaConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
        vocab_size=40, max_position_embeddings=34,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(tmp_path / "roberta")
    result = export(tmp_path, f"transformers:{tmp_path / 'roberta'}")
    assert result.size_rules == (SizeRule("sequence", max=32),)


class RunsCode:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_code_in_an_ultralytics_checkpoint_is_not_run(tmp_path: Path) -> None:
    pytest.importorskip("ultralytics")
    torch = pytest.importorskip("torch")
    torch.save({"model": RunsCode(tmp_path / "ran"), "text": "ultralytics"}, tmp_path / "x.pt")
    with pytest.raises(InputError, match="Ultralytics cannot load"):
        export(tmp_path, str(tmp_path / "x.pt"))
    assert not (tmp_path / "ran").exists()


def test_code_in_an_ultralytics_configuration_is_not_run(tmp_path: Path) -> None:
    pytest.importorskip("ultralytics")
    code = f"(open({str(tmp_path / 'ran')!r}, 'w'), torch.nn.SiLU())[1]"
    (tmp_path / "x.yaml").write_text(
        f"nc: 2\nactivation: {json.dumps(code)}\nbackbone:\n  - [-1, 1, Conv, [16, 3, 2]]\n"
        "head:\n  - [[0], 1, Classify, [nc]]\n"
    )
    with pytest.raises(InputError, match="unsupported activation"):
        export(tmp_path, str(tmp_path / "x.yaml"))
    assert not (tmp_path / "ran").exists()


def test_an_ultralytics_address_is_not_fetched_unless_asked(tmp_path: Path) -> None:
    pytest.importorskip("ultralytics")
    with pytest.raises(InputError, match="does not exist here"):
        export(tmp_path, "ultralytics:https://127.0.0.1:1/x.yaml")


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


def test_an_example_fits_a_short_table_of_positions(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.CLIPTextConfig(
        vocab_size=30, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=12,
    )  # fmt: skip
    transformers.CLIPTextModel(config).save_pretrained(tmp_path / "clip")
    result = export(tmp_path, f"transformers:{tmp_path / 'clip'}")
    assert result.size_rules == (SizeRule("sequence", max=12),)


def test_an_input_of_another_kind_is_named(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.Wav2Vec2Config(
        hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2,
        conv_dim=(4,), conv_kernel=(3,), conv_stride=(2,), num_conv_pos_embeddings=2,
        num_conv_pos_embedding_groups=2,
    )  # fmt: skip
    transformers.Wav2Vec2Model(config).save_pretrained(tmp_path / "sound")
    with pytest.raises(InputError, match="Wav2Vec2Model, which takes 'input_values'"):
        export(tmp_path, f"transformers:{tmp_path / 'sound'}")


def test_the_biased_attention_of_t5_is_exported(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.T5Config(
        vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2,
        architectures=["T5EncoderModel"],
    )  # fmt: skip
    transformers.T5EncoderModel(config).save_pretrained(tmp_path / "t5")
    assert export(tmp_path, f"transformers:{tmp_path / 't5'}").exporter.startswith("dynamo")
