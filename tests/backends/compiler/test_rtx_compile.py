"""Real engines from the real TensorRT-RTX, which compiles without a GPU."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.builders import BFLOAT16, FLOAT, FLOAT16, INT64, constant, model, op, value
from trtdeploy.backends.compiler.compile_process import ask_installed_parser, compile_engine
from trtdeploy.backends.compiler.compile_request import (
    CompileRequest,
    CompileResult,
    EngineSpec,
    PrecisionProof,
)
from trtdeploy.backends.engine.plan_header import read_plan_header
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.core.errors import CompileError, NotPossibleError, OptimizationProfileError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange

pytest.importorskip("tensorrt_rtx")

SM89, SM120 = 0x08, 0x10  # bits of the mask at byte 32 of a plan, as observed
DYNAMIC = ("N", 3, 8, 8)
STATIC = (2, 3, 8, 8)


def save_conv(folder: Path, dtype: int = FLOAT, shape: Any = STATIC) -> str:
    """Save x -> (Cast) -> Conv -> Relu -> (Cast) -> y."""
    weights = constant("w", np.full((4, 3, 3, 3), 0.1))
    nodes = [
        op("Cast", "x", "x_low", to=dtype),
        op("Cast", "w", "w_low", to=dtype),
        op("Conv", "x_low w_low", "c", "conv", pads=[1, 1, 1, 1]),
        op("Relu", "c", "r"),
        op("Cast", "r", "y", to=FLOAT),
    ]
    if dtype == FLOAT:
        nodes = [op("Conv", "x w", "c", "conv", pads=[1, 1, 1, 1]), op("Relu", "c", "y")]
    path = folder / "model.onnx"
    made = model(nodes, [value("x", shape)], [value("y", (shape[0], 4, 8, 8))], [weights])
    onnx.save(made, path)
    return str(path)


def make_profile(name: str, *batches: int) -> OptimizationProfile:
    return OptimizationProfile(name, {"x": ShapeRange(*((batch, 3, 8, 8) for batch in batches))})


def make_request(
    model_path: str, options: dict[str, Any] | None = None, **fields: Any
) -> CompileRequest:
    chosen = BuildSection.model_construct(**{"compute_capabilities": ("8.9",), **(options or {})})
    return CompileRequest(
        model_path=model_path,
        engine_path=str(Path(model_path).parent / "model.engine"),
        timing_cache_path=fields.pop("timing_cache_path", None),
        options=chosen,
        spec=EngineSpec("tensorrt_rtx", **fields),
    )


def compile_model(
    model_path: str, options: dict[str, Any] | None = None, **fields: Any
) -> CompileResult:
    request = make_request(model_path, options, **fields)
    return compile_engine(request, Path(model_path).parent / "build.log", timeout_s=60)


def read_header(folder: Path) -> tuple[bytes, int]:
    """Return the tag and the compute capability mask of a plan."""
    plan = (folder / "model.engine").read_bytes()
    (mask,) = struct.unpack_from("<Q", plan, 32)
    return plan[:4], mask


@pytest.mark.parametrize(
    ("dtype", "label", "counted"),
    [(FLOAT, "", "FLOAT"), (FLOAT16, "float16", "HALF"), (BFLOAT16, "bfloat16", "BF16")],
)
def test_each_precision(dtype: int, label: str, counted: str, tmp_path: Path) -> None:
    result = compile_model(save_conv(tmp_path, dtype), low_dtype=label)
    assert read_header(tmp_path) == (b"vtrt", SM89)
    assert result.precision == PrecisionProof("strongly typed network", {counted: 2})
    assert (result.typing, result.flags) == ("strong", ())
    assert result.build_s > 0
    assert "[INFO]" in (tmp_path / "build.log").read_text()


def test_an_fp32_model_is_no_fp16_engine(tmp_path: Path) -> None:
    path = save_conv(tmp_path)
    with pytest.raises(CompileError, match=r"no float16 layer .* it has \{'FLOAT': 2\}"):
        compile_model(path, low_dtype="float16")
    assert not (tmp_path / "model.engine").exists()


def test_several_compute_capabilities(tmp_path: Path) -> None:
    compile_model(save_conv(tmp_path), {"compute_capabilities": ("8.9", "12.0")})
    assert read_header(tmp_path) == (b"vtrt", SM89 | SM120)
    header = read_plan_header(tmp_path / "model.engine")
    assert header is not None
    assert (header.product, header.compute_capabilities) == ("TensorRT-RTX", ("8.9", "12.0"))


def test_dynamic_shapes_and_several_profiles(tmp_path: Path) -> None:
    path = save_conv(tmp_path, FLOAT16, DYNAMIC)
    engine = tmp_path / "model.engine"
    compile_model(path, optimization_profiles=(make_profile("a", 1, 2, 4),))
    size = engine.stat().st_size
    both = (make_profile("a", 1, 2, 4), make_profile("b", 4, 8, 8))
    compile_model(path, optimization_profiles=both)
    assert engine.stat().st_size > size


@pytest.mark.parametrize(
    ("profiles", "said"),
    [
        ((), "the shapes of 'x' vary, and there is no optimization profile"),
        ((make_profile("p", 4, 2, 1),), "refuses optimization profile 'p'"),
        ((make_profile("p", -1, 2, 4),), "refuses the shapes .* for input 'x'"),
    ],
)
def test_profiles_that_tensorrt_refuses(
    profiles: tuple[OptimizationProfile, ...], said: str, tmp_path: Path
) -> None:
    with pytest.raises(OptimizationProfileError, match=said):
        compile_model(save_conv(tmp_path, shape=DYNAMIC), optimization_profiles=profiles)


def save_reshape(folder: Path) -> str:
    """Save a Reshape whose target is an input: a shape tensor, beside a scalar input."""
    path = folder / "model.onnx"
    nodes = [op("Reshape", "x s", "z"), op("Add", "z k", "y")]
    inputs = [value("x", ("A", "B")), value("s", (2,), INT64), value("k", ())]
    onnx.save(model(nodes, inputs, [value("y", ("C", "D"))]), path)
    return str(path)


def make_reshape_profile(*values: tuple[int, ...]) -> OptimizationProfile:
    shapes = {"x": ShapeRange((1, 4), (2, 4), (4, 4))}
    return OptimizationProfile("p", shapes, {"s": ValueRange(*values)})


def test_shape_tensors_get_their_values(tmp_path: Path) -> None:
    ranges = make_reshape_profile((1, 4), (2, 4), (4, 4))
    compile_model(save_reshape(tmp_path), optimization_profiles=(ranges,))
    assert read_header(tmp_path)[0] == b"vtrt"


def test_shape_values_that_tensorrt_refuses(tmp_path: Path) -> None:
    ranges = make_reshape_profile((9, 4), (2, 4), (4, 4))
    with pytest.raises(OptimizationProfileError, match=r"refuses the values .* for input 's'"):
        compile_model(save_reshape(tmp_path), optimization_profiles=(ranges,))


def save_unsupported(folder: Path) -> str:
    path = folder / "model.onnx"
    nodes = [op("Relu", "x", "r"), op("Det", "r", "y", "/head/Det")]
    onnx.save(model(nodes, [value("x", (2, 3, 3))], [value("y", (2,))]), path)
    return str(path)


def test_parser_errors_name_node_op_and_opset(tmp_path: Path) -> None:
    said = r"refuses the model: node '/head/Det' \(op Det, opset 17\): checkDet: false"
    with pytest.raises(CompileError, match=said) as info:
        compile_model(save_unsupported(tmp_path))
    assert "trtdeploy check" in info.value.hint
    assert "checkDet" in info.value.log_tail


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_text("not a model")
    with pytest.raises(CompileError, match="refuses the model: the graph"):
        compile_model(str(path))


def test_the_probe_asks_the_real_parser(tmp_path: Path) -> None:
    request = replace(make_request(save_unsupported(tmp_path)), parse_only=True)
    answer = ask_installed_parser(request)
    assert answer.parser.startswith("TensorRT-RTX 1.")
    assert answer.unsupported_operators == {"Det"}
    assert [(error.node, error.op_type) for error in answer.errors] == [("/head/Det", "Det")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"compute_capabilities": ("8.7",)}, "cannot compile for SM87"),
        ({"dla_core": 0}, "finds 0 DLA cores"),
        ({"hardware_compatibility": "ampere_plus"}, "does not take hardware_compatibility_level"),
        ({"optimization_level": 9}, "does not take builder_optimization_level = 9: it stays 5"),
        ({"aux_streams": -3}, "does not take max_aux_streams = -3"),
    ],
)
def test_settings_that_rtx_drops_silently_are_refused(
    options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(NotPossibleError, match=said):
        compile_model(save_conv(tmp_path), options)


def test_settings_that_rtx_takes(tmp_path: Path) -> None:
    options = {
        "workspace": 1 << 20,  # would make the build fail if it were forwarded
        "optimization_level": 2,
        "aux_streams": 1,
        "sparse_weights": True,
        "weight_streaming": True,
        "debug_precision": True,
    }
    result = compile_model(save_conv(tmp_path), options, tf32=True)
    assert result.flags == ("SPARSE_WEIGHTS", "WEIGHT_STREAMING", "DEBUG", "TF32")


def test_the_builder_refuses_in_its_own_words(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"returned no engine: .*libnvinfer_lean") as info:
        compile_model(save_conv(tmp_path), {"version_compatible": True})
    assert info.value.exit_code == 6
