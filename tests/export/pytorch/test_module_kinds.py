"""Models that keep state, write into inputs, loop over time, or come in wrappers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trtdeploy.backends.onnxruntime.session import OnnxRuntimeSession
from trtdeploy.core.errors import CheckFailedError, InputError
from trtdeploy.export.arguments import parse_input_argument
from trtdeploy.export.exporting import export_model
from trtdeploy.export.proof import ProofSample, Reference, prove_file
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.graph.loading import load_model

torch = pytest.importorskip(
    "torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'"
)
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

MODULES = "tests.export.pytorch.kind_modules"
X, IMAGE, TIMES = "x:float32:2x8", "x:float32:2x3x16x24", "x:float32:2x5x8"


def export(folder: Path, name: str, *inputs: str, **fields: Any) -> ExportResult:
    parsed = tuple(map(parse_input_argument, inputs))
    return export_model(
        ExportRequest(f"{MODULES}:{name}", folder / "m.onnx", inputs=parsed, **fields)
    )


def make(name: str, *args: Any) -> Any:
    from tests.export.pytorch import kind_modules

    return getattr(kind_modules, name)(*args)


def make_flat(module: Any, *args: Any) -> Any:
    from trtdeploy.export.pytorch.flat_module import FlatModule
    from trtdeploy.export.pytorch.source import TorchSource

    return FlatModule(TorchSource(module, args))


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_models_may_write_into_their_inputs(exporter: Any, tmp_path: Path) -> None:
    path = export(tmp_path, "WritesIntoInput", X, exporter=exporter).path
    x = np.linspace(-3, 3, 16, dtype=np.float32).reshape(2, 8)
    with OnnxRuntimeSession(path) as session:
        outputs = session.run({"x": x})
    kept = np.maximum(x - 1, 0)
    np.testing.assert_array_equal(outputs["output0"], kept * 2)
    np.testing.assert_array_equal(outputs["output1"], kept)


def test_runs_leave_feeds_and_attributes_alone() -> None:
    x = torch.randn(2, 8)
    feeds = {"x": x.clone()}
    make_flat(make("WritesIntoInput"), x).run(feeds)
    assert torch.equal(feeds["x"], x)
    image, module = torch.randn(2, 3, 16, 24), make("CachedGrid")
    make_flat(module, image).run({"x": image})
    assert module.grid is None
    assert module.sums == [None]


def test_what_a_model_caches_by_size_is_not_baked_in(tmp_path: Path) -> None:
    result = export(tmp_path, "CachedGrid", IMAGE, exporter="dynamo")
    assert result.proof.status == "proven"
    assert result.inputs[0].shape == ("batch", 3, "height", "width")


def test_state_that_changes_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="changes its own state"):
        export(tmp_path, "Counter", X, exporter="torchscript")


def test_outputs_named_like_inputs_get_names_of_their_own(tmp_path: Path) -> None:
    result = export(tmp_path, "InputNamedOutput", X, exporter="torchscript")
    assert [spec.name for spec in result.outputs] == ["x_out", "same"]
    assert "output 'x' is called 'x_out': an input has that name" in result.notes


def test_outputs_that_are_no_tensors_are_left_out(tmp_path: Path) -> None:
    result = export(tmp_path, "SizeOutput", X, exporter="dynamo")
    assert [spec.name for spec in result.outputs] == ["output0"]
    assert "outputs that are no tensors are left out: output1, output2" in result.notes


def test_complex_outputs_are_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="output 'output' is complex"):
        export(tmp_path, "ComplexOutput", X)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules_take_any_length(kind: str, tmp_path: Path) -> None:
    dynamic = {"x": {0: "batch", 1: "time"}}
    result = export(tmp_path, "Recurrent", TIMES, dynamic=dynamic, config=(f"kind={kind}",))
    assert kind in {node.op_type for node in load_model(result.path).graph.node}
    assert result.inputs[0].shape == ("batch", "time", 8)
    assert any(f"at module 'rnn' ({kind})" in n and "TorchScript" in n for n in result.notes)


def test_numbers_that_pass_through_numpy_are_decisions(tmp_path: Path) -> None:
    match = r"ThroughNumpy, kind_modules.py line.* \(a tensor became a NumPy array\)"
    with pytest.raises(InputError, match=match):
        export(tmp_path, "ThroughNumpy", X)


def test_files_of_the_second_exporter_say_why_the_first_failed(tmp_path: Path) -> None:
    match = r"shape .*; at module 'up' \(ConvTranspose2d\), kind_modules.py line"
    with pytest.raises(CheckFailedError, match=match):
        export(tmp_path, "SizedTranspose", IMAGE)


@pytest.mark.parametrize(
    "order", ["compile", "parallel", "compile,parallel", "inside,compile", "inside,parallel"]
)
def test_wrappers_are_taken_off(order: str) -> None:
    from trtdeploy.export.pytorch.source import TorchSource

    module = TorchSource(make("wrapped", order)).module
    prefix = "0." if "inside" in order else ""
    assert list(module.state_dict()) == [f"{prefix}0.weight", f"{prefix}0.bias"]
    assert f"{prefix}0" in dict(module.named_modules())


def test_compiled_functions_run_as_they_are_written() -> None:
    def refuse(*_args: Any) -> Any:
        raise AssertionError("something was compiled")

    class Parts(torch.nn.Module):  # type: ignore[misc]  # torch is not followed
        def __init__(self) -> None:
            super().__init__()
            self.double = torch.compile(lambda x: x * 2, backend=refuse)
            self.net = make("net")
            self.net.compile(backend=refuse)

        def forward(self, x: Any) -> Any:
            return self.double(self.net(x))

    x = torch.randn(2, 8)
    found = make_flat(Parts(), x).run({"x": x})["output"]
    np.testing.assert_array_equal(found, make("net")(x).detach().numpy() * 2)


@pytest.mark.parametrize("prefix", ["module.", "model._orig_mod.", "_orig_mod.module.model."])
def test_weights_are_found_under_all_prefixes(prefix: str, tmp_path: Path) -> None:
    from trtdeploy.export.pytorch.weights import load_weights

    trained = {name: tensor + 1 for name, tensor in make("net").state_dict().items()}
    torch.save({prefix + name: t for name, t in trained.items()}, tmp_path / "w.pth")
    model = make("wrapped", "compile,parallel")
    load_weights(model, tmp_path / "w.pth")
    found = model.state_dict().values()
    assert all(torch.equal(a, b) for a, b in zip(found, trained.values(), strict=True))


def test_parametrized_weights_are_baked(tmp_path: Path) -> None:
    result = export(tmp_path, "parametrized", "input:float32:2x8")
    model = load_model(result.path)
    assert result.proof.status == "proven"
    assert {"0.weight", "1.weight"} <= {tensor.name for tensor in model.graph.initializer}


def test_code_that_casts_is_told_that_weights_were_widened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"at module .fc. .*, kind_modules.py line") as caught:
        export(tmp_path, "CastsToHalf", X)
    assert "weights and inputs were made FP32" in (caught.value.hint or "")


def test_types_of_outputs_are_part_of_the_proof(tmp_path: Path) -> None:
    path = export(tmp_path, "SizeOutput", X, exporter="torchscript").path
    x = np.zeros((2, 8), np.float32)
    sample = ProofSample({}, {"x": x}, {"output0": x.astype(np.float64)})
    with pytest.raises(CheckFailedError, match="file is float32, that of the source float64"):
        prove_file(path, [sample], rtol=1.0, reference=Reference("numpy"))
