"""What is declared of outputs does not hang on the sizes that a proof happens to use."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.export.arguments import parse_input_argument
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest, ProofOptions

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"batch": (2,), "height": (64, 96), "width": (64, 96)},
    ],
    ids=str,
)
def test_stated_sizes_do_not_name_outputs(
    tmp_path: Path, sizes: dict[str, tuple[int, ...]]
) -> None:
    request = ExportRequest(
        "tests.export.pytorch.sized_modules:Strided",
        tmp_path / "m.onnx",
        inputs=(parse_input_argument("x:float32:2x3x16x20"),),
        dynamic={"x": {0: "batch", 2: "height", 3: "width"}},
        proof=ProofOptions(sizes=sizes),
    )
    result = export_model(request)
    assert [spec.shape for spec in result.outputs] == [
        ("batch", 4, "output0_2", "output0_3"),
        ("batch", 3, "height", "output1_3"),
        ("batch", 3, "output2_2", "width"),
    ]
