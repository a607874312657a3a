"""``trtdeploy export`` as typed: instant help, exit codes, nothing of PyTorch in a base install."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trtdeploy.cli.export import render_result
from trtdeploy.cli.main import run
from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.result import ExportProof, ExportResult, ProofPoint

FRAMEWORKS = {"torch", "torchvision", "timm", "transformers", "ultralytics", "onnxscript"}


def list_imports(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stderr.split())


def test_help_is_instant_and_shows_every_kind_of_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = "from trtdeploy.cli.main import run\nassert run(['export', '--help']) == 0"
    assert not list_imports(code) & {*FRAMEWORKS, "numpy", "onnx", "onnxruntime"}
    assert run(["export", "--help"]) == 0
    shown = capsys.readouterr().out
    for word in ("module:callable", "torchvision:", "timm:", "transformers:", "yolov8n.pt",
                 ".pt2", "model.onnx", "AGPL", "trtdeploy[export]"):  # fmt: skip
        assert word in shown


def test_the_api_and_its_export_import_no_framework() -> None:
    code = "import trtdeploy.api, trtdeploy.export.exporting, trtdeploy.export.proof"
    assert not list_imports(code) & FRAMEWORKS


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["resnet50"], 2, "module:callable"),
        (["timm:x", "--input", "x:float32"], 2, "NAME:DTYPE:SHAPE"),
        (["timm:x", "--exporter", "magic"], 2, "auto, dynamo, torchscript"),
        (["timm:x", "--proof-tolerance", "nan"], 2, "--proof-tolerance nan: expected a number"),
        (["timm:x", "--proof-tolerance", "inf"], 2, "expected a number above 0"),
        (["timm:x", "--proof-tolerance", "-1"], 2, "expected a number above 0"),
        (["timm:x", "--proof-tolerance", "0"], 2, "expected a number above 0"),
        (["missing.pt2"], 3, "does not exist"),
    ],
)
def test_exit_codes(
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["export", *arguments, "-o", str(tmp_path / "m.onnx")]) == code
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_torch_the_exit_code_is_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    target = str(tmp_path / "m.onnx")
    assert run(["export", "timm:x", "-o", target, "--output", "json"]) == 4
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["kind"] == "MissingDependencyError"
    assert "trtdeploy[export]" in error["hint"]


def make_result(**fields: object) -> ExportResult:
    known: dict[str, object] = {
        "path": Path("m.onnx"),
        "source": "timm:x",
        "exporter": "dynamo, PyTorch 2.14",
        "opset": 17,
        "opset_reason": "orin-fp16 may meet TensorRT 8.6",
        "inputs": (TensorSpec("x", DType.FLOAT32, ("batch", 3)),),
        "outputs": (TensorSpec("y", DType.FLOAT32, ("batch",)),),
        "proof": ExportProof(
            "proven", "PyTorch 2.14", (ProofPoint({"batch": 1}, 1e-7, "y"),), True
        ),
        "size_rules": (SizeRule("height", 32, 64),),
        "pins": ("/norm/*",),
    }
    return ExportResult(**{**known, **fields})  # type: ignore[arg-type]


def test_a_result_says_what_was_proven_and_what_to_type_next() -> None:
    shown = render_result(make_result())
    for words in ("opset 17 (orin-fp16", "x: float32 batchx3", "height: multiples of 32 from 64",
                  "/norm/*", "equals PyTorch 2.14 within 1.0e-07 at batch 1",
                  "trtdeploy build m.onnx --profile NAME"):  # fmt: skip
        assert words in shown


def test_a_result_that_is_not_proven_says_so() -> None:
    shown = render_result(make_result(proof=ExportProof("skipped", reason="--no-proof was given")))
    assert "skipped: --no-proof was given" in shown


def test_json_holds_everything() -> None:
    found = json.loads(json.dumps(make_result().to_dict()))
    assert found["size_rules"] == {"height": {"multiple_of": 32, "min": 64, "max": None}}
    assert found["keep_fp32"] == ["/norm/*"]
    assert found["proof"]["points"][0]["sizes"] == {"batch": 1}
    assert found["inputs"] == [{"name": "x", "dtype": "float32", "shape": ["batch", 3]}]
