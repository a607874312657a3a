"""Programs of torch.export: given as modules, quantized ones, and ones with unknown operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trtdeploy.core.errors import InputError
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.graph.loading import load_model

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'"
)
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

SOURCE = """
import torch
from torch import nn

class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.drop = nn.Linear(8, 4), nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.fc(x))

def make(training=False):
    x = torch.randn(2, 8)
    program = torch.export.export(Dropped().train(training), (x,))
    return program.module(), x
"""
STEP = 1 / 16


class MeanOnTies(torch.nn.Module):  # type: ignore[misc, name-defined]
    """The mean of 8 multiples of a step, quantized by that step: a tie one time in eight."""

    def forward(self, x: Any) -> Any:
        quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
        dequantize = torch.ops.quantized_decomposed.dequantize_per_tensor.default
        for value in (STEP, STEP):
            whole = quantize(x, value, 0, -127, 127, torch.int8)
            x = dequantize(whole, value, 0, -127, 127, torch.int8)
            x = x.mean(-1) if value is STEP and x.dim() == 3 else x
        return x


def export(folder: Path, source: str, **fields: Any) -> ExportResult:
    return export_model(ExportRequest(source, folder / "m.onnx", **fields))


def test_a_program_given_as_a_module_is_taken(tmp_path: Path) -> None:
    (tmp_path / "program_source.py").write_text(SOURCE)
    result = export(tmp_path, f"{tmp_path}/program_source.py:make", dynamic={})
    assert result.proof.status == "proven"
    assert [node.op_type for node in load_model(result.path).graph.node] == ["Gemm"]


def test_one_in_training_mode_is_refused(tmp_path: Path) -> None:
    (tmp_path / "training_source.py").write_text(SOURCE)
    with pytest.raises(InputError, match="computes as in training: dropout"):
        export(
            tmp_path, f"{tmp_path}/training_source.py:make", dynamic={}, config=("training=true",)
        )


def save_quantized(path: Path) -> None:
    import torch.ao.quantization.fx._decomposed

    program = torch.export.export(MeanOnTies(), (torch.randn(2, 5, 8),))
    torch.export.save(program, path)


def test_a_quantized_program_keeps_its_pairs(tmp_path: Path) -> None:
    save_quantized(tmp_path / "q.pt2")
    result = export(tmp_path, str(tmp_path / "q.pt2"), dynamic={})
    kinds = [node.op_type for node in load_model(result.path).graph.node]
    assert (kinds.count("QuantizeLinear"), kinds.count("DequantizeLinear")) == (2, 2)


def test_random_rounding_finds_how_far_a_tie_moves_the_output() -> None:
    import torch.ao.quantization.fx._decomposed

    from trtdeploy.export.proof import ProofSample
    from trtdeploy.export.pytorch.flat_module import FlatModule
    from trtdeploy.export.pytorch.rounding import run_rounding_otherwise
    from trtdeploy.export.pytorch.source import TorchSource

    steps = np.zeros((1, 64, 8), np.float32)
    steps[:, :, :4] = STEP * np.arange(-32, 32).reshape(1, 64, 1)
    steps[:, :, 0] += STEP  # sums of 4 n + 1 steps: no tie
    tied = steps.copy()
    tied[:, :, 1] += 3 * STEP  # 4 n + 4 steps, a tie for every odd n
    found = {}
    for name, array in (("far", steps), ("tied", tied)):
        x = torch.from_numpy(array)
        flat = FlatModule(TorchSource(MeanOnTies(), (x,)))
        sample = ProofSample({}, {"x": array}, flat.run({"x": x}))
        expected = sample.expected["output"]
        others = run_rounding_otherwise(flat, sample)
        found[name] = max(np.abs(other["output"] - expected).max() for other in others)
    assert found["far"] < 1e-5
    assert found["tied"] == pytest.approx(STEP, rel=0.1)


def test_operators_that_nothing_registered_are_named(tmp_path: Path) -> None:
    library = torch.library.Library("trtdeploy_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")

    class Custom(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.ops.trtdeploy_test.twice(x)

    program = torch.export.export(Custom(), (torch.randn(2),))
    torch.export.save(program, tmp_path / "custom.pt2")
    library._destroy()
    with pytest.raises(InputError, match=r"registered: trtdeploy_test\.twice") as caught:
        export(tmp_path, str(tmp_path / "custom.pt2"))
    assert "FILE.py:make" in caught.value.hint
