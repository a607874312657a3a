"""Files that a trace made wrong are refused, wherever the error hides; honest ones are not."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from trtdeploy.core.errors import CheckFailedError
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch


def export(folder: Path, name: str) -> ExportResult:
    source = f"tests.export.pytorch.baked_modules:{name}"
    return export_model(ExportRequest(source, folder / "m.onnx", exporter="torchscript"))


@pytest.mark.parametrize("name", ["detector", "masked", "tied_ids"])
def test_a_baked_decision_is_seen(name: str, tmp_path: Path) -> None:
    with pytest.raises(CheckFailedError, match=r"at batch=1, .* differs from the source"):
        export(tmp_path, name)
    assert list(tmp_path.iterdir()) == []


def test_channels_that_cancel_or_are_tiny_are_no_error(tmp_path: Path) -> None:
    proof = export(tmp_path, "cancelling").proof
    assert proof.status == "proven"
    assert proof.batch_independent
    assert math.isfinite(proof.max_error)
    assert proof.max_error < 1e-5
