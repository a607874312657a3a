"""PyTorch models to ONNX: a right file, or an error that names module, line and cause."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.arguments import parse_dynamic_arguments, parse_input_argument
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.result import ExportResult
from trtdeploy.graph.export_facts import read_pins, read_size_rules
from trtdeploy.graph.loading import load_model

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'trtdeploy[export]'")
pytest.importorskip("onnxscript", reason="onnxscript is not installed")

pytestmark = pytest.mark.pytorch

MODULES = "tests.export.pytorch.modules"


def export(folder: Path, name: str, *inputs: str, **fields: Any) -> ExportResult:
    request = ExportRequest(
        source=name if ":" in name or "." in name else f"{MODULES}:{name}",
        output=folder / "m.onnx",
        inputs=tuple(map(parse_input_argument, inputs)),
    )
    return export_model(replace(request, **fields))


def export_inner(folder: Path, name: str, *inputs: str, **fields: Any) -> ExportResult:
    return export(folder, "make", *inputs, config=(f"name={name}",), **fields)


def count_operators(result: ExportResult) -> Counter[str]:
    return Counter(node.op_type for node in load_model(result.path).graph.node)


def shapes(result: ExportResult) -> dict[str, Any]:
    return {spec.name: spec.shape for spec in (*result.inputs, *result.outputs)}


@pytest.fixture(scope="module")
def pyramid(tmp_path_factory: pytest.TempPathFactory) -> ExportResult:
    return export(tmp_path_factory.mktemp("pyramid"), "pyramid", profile="orin-fp16")


def test_a_dictionary_of_outputs_keeps_its_names_and_sizes(pyramid: ExportResult) -> None:
    assert shapes(pyramid) == {
        "images": ("batch", 3, "height", "width"),
        "logits": ("batch", 2),
        "maps": ("batch", 4, "maps_2", "maps_3"),
    }


def test_the_file_is_proven_at_two_sizes_of_everything(pyramid: ExportResult) -> None:
    proof = pyramid.proof
    assert proof.status == "proven"
    assert proof.batch_independent is True
    assert proof.max_error < 1e-5
    for symbol in ("batch", "height", "width"):
        assert len({point.sizes[symbol] for point in proof.points}) == 2


def test_steps_are_discovered_and_kept_in_the_file(pyramid: ExportResult) -> None:
    rules = (SizeRule("height", 4, 4), SizeRule("width", 4, 4))
    assert pyramid.size_rules == read_size_rules(load_model(pyramid.path)) == rules


def test_blocks_without_autocast_become_pins(pyramid: ExportResult) -> None:
    assert set(pyramid.pins) == {"/norm/*", "/ReduceMean"}
    assert read_pins(load_model(pyramid.path)) == pyramid.pins


def test_the_profile_decides_the_opset(pyramid: ExportResult) -> None:
    assert (pyramid.opset, load_model(pyramid.path).opset) == (17, 17)
    assert "orin-fp16" in pyramid.opset_reason


def test_dropout_and_batch_norm_in_training_mode_are_put_right(pyramid: ExportResult) -> None:
    assert "Dropout" not in count_operators(pyramid)
    assert any("stage.norm, stage.drop" in note for note in pyramid.notes)


def test_nodes_are_called_after_modules_and_tell_nothing_of_this_machine(
    pyramid: ExportResult,
) -> None:
    names = {node.name for node in load_model(pyramid.path).graph.node}
    assert {"/stage/norm/Conv", "/down/Conv", "/head/Gemm"} <= names
    content = pyramid.path.read_bytes()
    assert str(Path(__file__).parent).encode() not in content
    assert b"trtdeploy_model" not in content


@pytest.mark.parametrize(
    ("name", "place", "cause"),
    [
        ("DataBranch", r"'inner' \(DataBranch\), modules.py line \d+: if x.mean\(\)", "values"),
        ("AlwaysDropout", r"dropout at module 'inner' \(AlwaysDropout\)", "as in training"),
        ("BatchStatistics", r"batch_norm at module 'inner.norm' \(BatchNorm1d\)", "as in training"),
        ("StubbornDropout", r"'inner' \(StubbornDropout\)", "stays in training mode"),
        ("WrongSizes", r"WrongSizes\), modules.py line \d+: return x @", "fails on its example"),
    ],
)
def test_what_cannot_be_exported_names_module_line_and_cause(
    name: str, place: str, cause: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=place) as caught:
        export_inner(tmp_path, name, "x:float32:2x4")
    assert cause in caught.value.message
    assert caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_baked_size_names_its_line(tmp_path: Path) -> None:
    place = (
        r"fixes axis 0 of 'x'.*example.*'inner' \(BakedBatch\), modules.py line \d+: return x.resh"
    )
    with pytest.raises(InputError, match=place):
        export_inner(tmp_path, "BakedBatch", "x:float32:2x4", dynamic={"x": {0: "batch"}})
    result = export_inner(tmp_path, "BakedBatch", "x:float32:2x4")
    assert any(re.search(place, note) for note in result.notes)


@pytest.mark.parametrize("name", ["OneSample", "SampleByBranch"])
def test_an_example_of_one_sample_stays_one_where_the_batch_cannot_vary(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="'batch' is asked to vary"):
        export_inner(tmp_path, name, "x:float32:1x4", dynamic={"x": {0: "batch"}})
    result = export_inner(tmp_path, name, "x:float32:1x4")
    assert shapes(result)["x"] == (1, 4)
    assert any("batch stays fixed at 1" in note for note in result.notes)


def test_an_operator_without_onnx_form_is_placed(tmp_path: Path) -> None:
    axes = parse_dynamic_arguments(["x:0=batch"])
    with pytest.raises(InputError, match=r"linalg_eig.*modules.py line \d+") as caught:
        export_inner(tmp_path, "Eigenvalues", "x:float32:2x4x4", dynamic=axes)
    assert "TorchScript exporter fails too" in caught.value.hint


def test_a_batch_that_stays_fixed_on_request_is_right(tmp_path: Path) -> None:
    axes = parse_dynamic_arguments(["x:"])
    result = export_inner(tmp_path, "BakedBatch", "x:float32:2x4", dynamic=axes)
    assert shapes(result)["x"] == (2, 4)
    assert result.proof.batch_independent is None


def test_samples_that_influence_each_other_are_reported(tmp_path: Path) -> None:
    result = export_inner(tmp_path, "MixesSamples", "x:float32:2x4")
    assert result.proof.batch_independent is False
    assert any("influence each other" in note for note in result.notes)


def test_a_branch_on_sizes_becomes_a_rule(tmp_path: Path) -> None:
    result = export_inner(tmp_path, "PadsToEight", "x:float32:1x3x32x48")
    assert SizeRule("height", 8, 8) in result.size_rules


def test_nested_integer_and_scalar_inputs(tmp_path: Path) -> None:
    result = export(
        tmp_path, "Nested", "batch.a:float32:1x4", "batch.ids:int64:1x4", "pair.0:float32:1x4",
        "scale:float32:scalar",
    )  # fmt: skip
    found = shapes(result)
    assert found["batch.a"] == ("batch", 4)
    assert found["scale"] == ()
    assert list(found)[-2:] == ["output0", "output1"]


def test_dataclasses_go_in_and_out_and_plain_numbers_are_fixed(tmp_path: Path) -> None:
    result = export(tmp_path, "dataclasses_example")
    assert list(shapes(result)) == ["pair.left", "pair.right", "left", "right"]
    assert any("gain=3.0" in note for note in result.notes)


def test_ids_stay_in_range_and_tables_limit_sequences(tmp_path: Path) -> None:
    result = export(tmp_path, "Embedding", "ids:int64:1x7:0..49", "rate:int64:scalar:16000")
    assert shapes(result)["ids"] == ("batch", "sequence")
    assert result.size_rules == (SizeRule("sequence", max=64),)


def test_half_precision_weights_become_float32_with_the_same_values(tmp_path: Path) -> None:
    from tests.export.pytorch.modules import half

    result = export(tmp_path, "half")
    model = load_model(result.path)
    weight = next(t for t in model.graph.initializer if t.name == "fc.weight")
    stored = np.concatenate(list(model.iterate_values(weight)))
    trained = half()[0].fc.weight.detach().numpy()
    assert stored.dtype == np.float32
    assert set(stored.tolist()) == set(trained.astype(np.float32).ravel().tolist())
    assert any("float16" in note for note in result.notes)


def test_custom_functions_in_float32_become_pins(tmp_path: Path) -> None:
    assert export_inner(tmp_path, "PinnedFunction", "x:float32:2x4").pins == ("/inner/Exp",)


@pytest.mark.parametrize(
    ("name", "inputs", "quantizers", "exporter"),
    [
        ("QuantizedProgram", ("x:float32:1x8",), {"QuantizeLinear": 1, "DequantizeLinear": 2},
         "dynamo"),
        ("fake_quantized", (), {"QuantizeLinear": 2, "DequantizeLinear": 2}, "TorchScript"),
    ],
)  # fmt: skip
def test_trained_quantization_survives(
    name: str, inputs: tuple[str, ...], quantizers: dict[str, int], exporter: str, tmp_path: Path
) -> None:
    result = export(tmp_path, name, *inputs)
    assert {k: count_operators(result)[k] for k in quantizers} == quantizers
    assert result.exporter.startswith(exporter)
    assert result.proof.status == "proven"


def test_torchscript_says_what_its_trace_fixed(tmp_path: Path) -> None:
    result = export_inner(tmp_path, "DataBranch", "x:float32:2x4", exporter="torchscript")
    assert any("fixed a decision at modules.py line" in note for note in result.notes)


def test_exported_programs_keep_their_own_dynamic_sizes(tmp_path: Path) -> None:
    import torch

    from tests.export.pytorch.modules import Pyramid

    free = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Pyramid().eval(), (torch.randn(2, 3, 32, 48),), dynamic_shapes=({0: free, 2: free},)
    )
    torch.export.save(program, tmp_path / "m.pt2")
    result = export(tmp_path, str(tmp_path / "m.pt2"))
    assert shapes(result)["images"] == ("batch", 3, "height", 48)
    assert "/LayerNormalization" in result.pins
    with pytest.raises(InputError, match=r"'w' \(axis 3 of 'images'\).*fixes it to 48"):
        export(
            tmp_path,
            str(tmp_path / "m.pt2"),
            dynamic=parse_dynamic_arguments(["images:3=w"]),
        )


def test_torchscript_files_need_their_inputs_and_keep_their_names(tmp_path: Path) -> None:
    import torch

    from tests.export.pytorch.modules import Linear

    path = tmp_path / "scripted.pt"
    torch.jit.script(Linear().eval()).save(path)
    with pytest.raises(UsageError, match="no example inputs") as caught:
        export(tmp_path, str(path))
    assert "--input x:float32" in caught.value.hint
    assert shapes(export(tmp_path, str(path), "x:float32:1x8"))["x"] == ("batch", 8)


def save_checkpoint(path: Path, *, outputs: int = 4, **extra: Any) -> Any:
    import torch

    from tests.export.pytorch.modules import Linear

    torch.manual_seed(1)
    state = Linear(outputs).state_dict()
    renamed = {f"module.{name}": tensor for name, tensor in state.items()}
    torch.save({"epoch": 3, "state_dict": {**renamed, **extra}}, path)
    return state


def test_weights_of_a_training_checkpoint_are_found(tmp_path: Path) -> None:
    state = save_checkpoint(tmp_path / "w.pth")
    result = export(tmp_path, "Linear", "x:float32:1x8", weights=tmp_path / "w.pth")
    model = load_model(result.path)
    bias = next(t for t in model.graph.initializer if t.name == "fc.bias")
    stored = np.concatenate(list(model.iterate_values(bias)))
    np.testing.assert_array_equal(stored, state["fc.bias"].numpy())


@pytest.mark.parametrize(
    ("outputs", "remove", "reason"),
    [(5, None, "another shape"), (4, "module.fc.bias", "lacks 1 weights"), (4, "", "no place")],
)
def test_weights_that_do_not_fit_leave_nothing_random(
    outputs: int, remove: str | None, reason: str, tmp_path: Path
) -> None:
    import torch

    save_checkpoint(tmp_path / "w.pth", outputs=outputs)
    checkpoint = torch.load(tmp_path / "w.pth", weights_only=True)
    if remove:
        del checkpoint["state_dict"][remove]
    elif remove is not None:
        checkpoint["state_dict"]["module.other"] = torch.zeros(1)
    torch.save(checkpoint, tmp_path / "w.pth")
    with pytest.raises(InputError, match=reason):
        export(tmp_path, "Linear", "x:float32:1x8", weights=tmp_path / "w.pth")


def test_weights_that_would_run_code_are_refused(tmp_path: Path) -> None:
    import torch

    torch.save({"model": Path("x")}, tmp_path / "w.pth")
    with pytest.raises(InputError, match="run code"):
        export(tmp_path, "Linear", "x:float32:1x8", weights=tmp_path / "w.pth")


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["y:0=batch"], "no such input"),
        (["x:7=batch"], "axis 7 does not exist"),
        (["x:0=n,1=n"], "the same symbol means the same size"),
    ],
)
def test_wrong_axes_are_usage_errors(texts: list[str], reason: str, tmp_path: Path) -> None:
    axes = parse_dynamic_arguments(texts)
    with pytest.raises(UsageError, match=reason):
        export(tmp_path, "Linear", "x:float32:2x8", dynamic=axes)


def test_a_stated_step_is_taken_and_unknown_symbols_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such dynamic size"):
        export(tmp_path, "Linear", "x:float32:2x8", multiples={"height": 32})
    result = export(tmp_path, "pyramid", multiples={"height": 16, "width": 16})
    assert result.size_rules == (SizeRule("height", 16, 16), SizeRule("width", 16, 16))


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (f"{MODULES}:Nothing", "has no 'Nothing'"),
        ("no.such.module:make", "cannot be imported"),
        (f"{MODULES}:MODULE", "has no 'MODULE'"),
        ("json:dumps", "json:dumps.*fails"),
    ],
)
def test_callables_that_are_none(source: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, InputError), match=reason):
        export(tmp_path, source)
