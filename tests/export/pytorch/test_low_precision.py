"""What a model says about precision, and how it is stored: pins, widened weights, Q/DQ, modes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trtdeploy.core.errors import InputError
from trtdeploy.export.arguments import parse_input_argument
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.graph.loading import load_model

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'"
)
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

MODULES = "tests.export.pytorch.low_precision_modules"
X = "x:float32:2x8"

DECORATED = """
import torch
from torch import nn

class Decorated(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    @torch.autocast("cuda")
    def low(self, x):
        return self.fc(x)

    @torch.autocast("cuda", enabled=False)
    def high(self, x):
        return x.exp()

    def forward(self, x):
        y = self.low(x)
        y = self.high(y)
        return y.sin().cos()
"""


def export(folder: Path, source: str, *inputs: str, **fields: Any) -> ExportResult:
    named = source if "." in source else f"{MODULES}:{source}"
    parsed = tuple(map(parse_input_argument, inputs))
    return export_model(ExportRequest(named, folder / "m.onnx", inputs=parsed, **fields))


def make(name: str, *args: Any) -> Any:
    from tests.export.pytorch import low_precision_modules

    return getattr(low_precision_modules, name)(*args)


@pytest.mark.parametrize(
    ("name", "exporter", "pins"),
    [
        ("AutocastOn", "torchscript", ()),
        ("OneOfThree", "torchscript", ("/blocks/1/*",)),
        ("OneOfThree", "dynamo", ("/blocks/1/*",)),
        ("BlockInRoot", "torchscript", ("/Exp",)),
    ],
)
def test_the_very_blocks_that_their_author_excludes_are_pinned(
    name: str, exporter: Any, pins: tuple[str, ...], tmp_path: Path
) -> None:
    result = export(tmp_path, name, X, exporter=exporter)
    assert result.pins == pins
    assert not any("autocast" in note for note in result.notes)


def test_decorators_count_as_they_were_written(tmp_path: Path) -> None:
    (tmp_path / "decorated_source.py").write_text(DECORATED)
    result = export(
        tmp_path, f"{tmp_path}/decorated_source.py:Decorated", X, exporter="torchscript"
    )
    assert result.pins == ("/Exp",)


@pytest.mark.parametrize(
    ("spare", "pins", "note"),
    [(0, (), "none is kept in FP32"), (1, ("/fc/*", "/Exp"), "all these stay in FP32")],
)
def test_blocks_around_most_of_a_model_are_questioned(
    spare: int, pins: tuple[str, ...], note: str, tmp_path: Path
) -> None:
    result = export(tmp_path, "Switch", X, exporter="torchscript", config=(f"spare={spare}",))
    assert result.pins == pins
    assert any(f"around 2 of {2 + spare} nodes" in n and note in n for n in result.notes)


def test_sizes_are_searched_without_autocast(tmp_path: Path) -> None:
    result = export(tmp_path, "OneOfThree", X, exporter="torchscript")
    assert result.inputs[0].shape == ("batch", 8)


def test_float64_stays_float64_beside_widened_weights() -> None:
    from trtdeploy.export.pytorch.source import TorchSource
    from trtdeploy.export.pytorch.widening import widen_module

    module = make("CastsInside").half()
    module.register_buffer("offset", torch.tensor(1 + 2.0**-40, dtype=torch.float64))
    widen_module(TorchSource(module, (torch.randn(2, 8),)))
    assert module.offset.item() == 1 + 2.0**-40
    assert module.fc.weight.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_programs_in_low_precision_become_float32(dtype: Any, tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = make("CastsInside").to(dtype).eval()
    sizes = ({0: torch.export.Dim("batch", max=64)},)
    x = torch.randn(2, 8, dtype=dtype)
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=sizes), tmp_path / "m.pt2")
    result = export(tmp_path, str(tmp_path / "m.pt2"))
    model = load_model(result.path)
    weight = next(t for t in model.graph.initializer if t.name == "fc.weight")
    stored = np.concatenate(list(model.iterate_values(weight)))
    trained = module.fc.weight.detach().float().numpy()
    assert result.proof.status == "proven"
    assert stored.dtype == np.float32
    assert set(stored.tolist()) == set(trained.ravel().tolist())
    assert any(str(dtype).removeprefix("torch.") in note for note in result.notes)
    assert any(node.name.startswith("/fc/") for node in model.graph.node)


def test_modules_that_say_they_fake_quantize_keep_their_pairs(tmp_path: Path) -> None:
    result = export(tmp_path, "Quantized", X)
    found = Counter(node.op_type for node in load_model(result.path).graph.node)
    assert (found["QuantizeLinear"], found["DequantizeLinear"]) == (1, 1)
    assert result.proof.status == "proven"


def make_trained() -> Any:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4)).train()


def test_programs_in_training_mode_are_refused_when_decomposed(tmp_path: Path) -> None:
    program = torch.export.export(make_trained(), (torch.randn(2, 3, 8, 8),))
    torch.export.save(program.run_decompositions(), tmp_path / "m.pt2")
    with pytest.raises(InputError, match=r"as in training: .*batch_norm.* at module '1'"):
        export(tmp_path, str(tmp_path / "m.pt2"))


@pytest.mark.parametrize(
    ("module", "operator"),
    [
        (make_trained(), "batch_norm"),
        (torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Dropout()), "dropout"),
    ],
)
def test_traces_in_training_mode_are_refused(module: Any, operator: str, tmp_path: Path) -> None:
    traced = torch.jit.trace(module, torch.randn(2, 3, 8, 8), check_trace=False)
    traced.save(tmp_path / "m.pt")
    with pytest.raises(InputError, match=rf"as in training: {operator} at module '1'"):
        export(tmp_path, str(tmp_path / "m.pt"), "input:float32:2x3x8x8")


@pytest.mark.parametrize("module", [make("AdaptiveNorm"), torch.nn.InstanceNorm2d(3, affine=True)])
def test_instance_normalization_is_no_training_mode(module: Any, tmp_path: Path) -> None:
    from trtdeploy.export.pytorch.eval_mode import enforce_eval_mode, find_training_nodes

    x = torch.randn(2, 3, 8, 8)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    assert list(find_training_nodes(program.run_decompositions())) == []
    assert enforce_eval_mode(torch.jit.trace(module, x)) == []


@pytest.mark.parametrize("kind", ["KeyError", "AttributeError", "ZeroDivisionError", "LookupError"])
def test_whatever_a_forward_raises_is_placed(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"{kind}.*at RaisesError, low_precision_modules.py line"):
        export(tmp_path, "RaisesError", X, config=(f"kind={kind}",))


@pytest.mark.parametrize("dtype", [torch.complex64, torch.int8])
def test_weights_of_another_kind_are_refused(dtype: Any, tmp_path: Path) -> None:
    torch.save(
        {"fc.weight": torch.ones(8, 8, dtype=dtype), "fc.bias": torch.ones(8)}, tmp_path / "w"
    )
    with pytest.raises(InputError, match=r"'fc.weight' is stored in (complex64|int8)"):
        export(tmp_path, "Switch", X, weights=tmp_path / "w")


def test_damaged_safetensors_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("safetensors", reason="safetensors is not installed")
    (tmp_path / "w.safetensors").write_bytes(b"junk")
    with pytest.raises(InputError, match="cannot be read as safetensors"):
        export(tmp_path, "Switch", X, weights=tmp_path / "w.safetensors")


def test_the_nest_that_weights_were_taken_from_is_named(tmp_path: Path) -> None:
    state = make("Switch").state_dict()
    torch.save({"model": state, "ema": {"module": state}}, tmp_path / "w.pth")
    result = export(tmp_path, "Switch", X, weights=tmp_path / "w.pth", exporter="torchscript")
    assert any("w.pth" in note and "'ema.module'" in note for note in result.notes)


def test_faults_outside_the_model_are_not_blamed_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from trtdeploy.export.pytorch import flat_module
    from trtdeploy.export.pytorch.source import TorchSource

    x = torch.randn(2, 8)
    flat = flat_module.FlatModule(TorchSource(make("BlockInRoot"), (x,)))
    monkeypatch.setattr(flat_module, "rebuild", lambda: None)
    with pytest.raises(TypeError, match="positional arguments"):
        flat.call({"x": x})
