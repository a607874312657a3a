"""Precision: which network, which flags and which pins the builder asks each TensorRT for."""

from pathlib import Path
from typing import Any

import pytest

from trtdeploy.backends.compiler.compile_request import PrecisionProof
from trtdeploy.core.errors import CompileError, NotPossibleError

from .engine_cases import (
    EITHER,
    PRECISION_FLAGS,
    RTX,
    STRONG,
    STRONG_ONLY,
    TENSORRT,
    WEAK_ONLY,
    find_config,
    list_networks,
    list_set_flags,
    make_inspection,
    make_network,
    run_build,
)
from .standin import VERSIONS, LayerContent, NetworkContent, TensorContent, make_trt_module

FP16: dict[str, Any] = {"recipe": "fp16", "low_dtype": "float16", "tf32": True}


def test_every_version_belongs_to_one_kind() -> None:
    assert sorted([*WEAK_ONLY, *EITHER, *STRONG_ONLY, *RTX]) == sorted(VERSIONS)


@pytest.mark.parametrize(
    ("version", "typing", "flag"),
    [
        *((v, "auto", "EXPLICIT_BATCH") for v in WEAK_ONLY),
        *((v, "weak", "EXPLICIT_BATCH") for v in WEAK_ONLY),
        *((v, "auto", "STRONGLY_TYPED") for v in EITHER + RTX),
        *((v, "strong", "STRONGLY_TYPED") for v in EITHER + RTX),
        *((v, "weak", None) for v in EITHER),
        *((v, "auto", None) for v in STRONG_ONLY),
        *((v, "strong", None) for v in STRONG_ONLY),
    ],
)
def test_network_is_created_with_the_flag_of_the_version(
    version: str, typing: str, flag: str | None, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    result = run_build(trt, tmp_path, typing=typing).result
    numbers = trt.context.api["enums"]["NetworkDefinitionCreationFlag"]
    assert list_networks(trt) == [1 << numbers[flag] if flag else 0]
    weak = version in WEAK_ONLY or typing == "weak"
    assert result.typing == ("weak" if weak else "strong")


@pytest.mark.parametrize(
    ("version", "typing"),
    [*((v, "strong") for v in WEAK_ONLY), *((v, "weak") for v in STRONG_ONLY + RTX)],
)
def test_a_typing_that_the_version_lacks_is_refused(
    version: str, typing: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    with pytest.raises(NotPossibleError, match=trt.__version__):
        run_build(trt, tmp_path, typing=typing)


@pytest.mark.parametrize("version", STRONG)
def test_strong_typing_never_touches_precision(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network("HALF"))
    result = run_build(trt, tmp_path, fp32_nodes=("conv", "relu"), **FP16).result
    assert result.flags == ("TF32",)
    assert trt.calls.members_used("BuilderFlag") == {"TF32"}
    for flag in PRECISION_FLAGS:
        assert trt.calls.select("BuilderFlag", flag) == []  # not even asked for
    assert trt.calls.select(member="precision") == []
    assert trt.calls.select(member="set_output_type") == []


@pytest.mark.parametrize("version", WEAK_ONLY + EITHER)
def test_weak_fp16_sets_the_flag_and_pins_exactly_the_fp32_nodes(
    version: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    both = "[ONNX Layer: /a/inner]\x1e[ONNX Layer: /norm[0]]"
    int_out, dims = TensorContent("i", "INT32"), TensorContent("d", "INT32")
    layers = (
        LayerContent("conv", "CONVOLUTION", ("x",), (TensorContent("c"),), "[ONNX Layer: conv]"),
        LayerContent("softmax", "SOFTMAX", ("c",), (TensorContent("s"),), "[ONNX Layer: softmax]"),
        LayerContent("(Unnamed Layer* 7)", "REDUCE", ("s",), (TensorContent("n"),), both),
        LayerContent("by_name", "UNARY", ("n",), (TensorContent("u"),)),
        LayerContent("top", "TOPK", ("u",), (TensorContent("t"), int_out), "[ONNX Layer: top]"),
        LayerContent("cast", "CAST", ("t",), (TensorContent("k"),), "[ONNX Layer: cast]"),
        LayerContent("one", "CONSTANT", (), (TensorContent("w"),), "[ONNX Layer: one]"),
        LayerContent("shape", "SHAPE", ("k",), (dims,), "[ONNX Layer: shape]"),
    )
    trt.set_network(NetworkContent((TensorContent("x"),), layers, ("k",)))
    trt.script["EngineInspector.get_engine_information"] = make_inspection("Half", "Float")
    pins = ("softmax", "/norm[0]", "by_name", "top", "cast", "one", "shape", "gone")
    result = run_build(trt, tmp_path, typing="weak", fp32_nodes=pins, **FP16).result
    assert sorted(result.flags) == ["FP16", "OBEY_PRECISION_CONSTRAINTS", "TF32"]
    assert list_set_flags(trt) == list(result.flags)
    set_precision = trt.calls.select(member="precision", kind="set")
    assert [(r.instance.name, r.args) for r in set_precision] == [  # type: ignore[attr-defined]
        (name, (trt.float32,)) for name in ("softmax", "(Unnamed Layer* 7)", "by_name", "top")
    ]
    set_outputs = trt.calls.select(member="set_output_type")
    assert {(r.instance.name, *r.args) for r in set_outputs} == {  # type: ignore[attr-defined]
        (r.instance.name, 0, trt.float32)  # type: ignore[attr-defined]
        for r in set_precision
    }


@pytest.mark.parametrize("version", WEAK_ONLY + EITHER)
def test_weak_typing_without_pins_obeys_nothing(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.script["EngineInspector.get_engine_information"] = make_inspection("Half")
    assert run_build(trt, tmp_path, typing="weak", **FP16).result.flags == ("TF32", "FP16")
    trt = make_trt_module(version)
    assert run_build(trt, tmp_path, typing="weak", fp32_nodes=("identity",)).result.flags == ()
    assert trt.calls.select(member="precision", kind="set") == []


@pytest.mark.parametrize("version", EITHER)
def test_weak_bf16_where_the_flag_exists(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.script["EngineInspector.get_engine_information"] = make_inspection("BFloat16")
    result = run_build(trt, tmp_path, typing="weak", recipe="bf16", low_dtype="bfloat16").result
    assert result.flags == ("BF16",)


@pytest.mark.parametrize(
    ("version", "recipe", "said"),
    [
        *((v, "bf16", "no builder flag BF16") for v in WEAK_ONLY),
        *((v, "fp8", "recipe fp8 needs a strongly typed network") for v in WEAK_ONLY + EITHER),
    ],
)
def test_a_recipe_that_weak_typing_cannot_do_is_refused(
    version: str, recipe: str, said: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    with pytest.raises(NotPossibleError, match=said) as info:
        run_build(trt, tmp_path, typing="weak", recipe=recipe)
    assert trt.__version__ in str(info.value)
    assert info.value.exit_code == 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_set_or_cleared_never_left_to_chance(
    version: str, tf32: bool, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    flags = run_build(trt, tmp_path, recipe="tf32" if tf32 else "fp32", tf32=tf32).result.flags
    assert flags == (("TF32",) if tf32 else ())
    assert find_config(trt).get_flag(trt.BuilderFlag.TF32) is tf32


@pytest.mark.parametrize("version", STRONG)
def test_a_strongly_typed_network_without_the_type_is_not_built(
    version: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network("FLOAT"))
    with pytest.raises(CompileError, match=r"no float16 layer.*\{'FLOAT': 2\}"):
        run_build(trt, tmp_path, **FP16)
    assert trt.calls.select("Builder", "build_serialized_network") == []


@pytest.mark.parametrize("version", RTX)
def test_rtx_is_proven_by_its_network(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network("HALF"))
    result = run_build(trt, tmp_path, **FP16).result
    assert result.precision == PrecisionProof("strongly typed network", {"HALF": 2})
    assert trt.calls.select("Runtime") == []


@pytest.mark.parametrize("version", TENSORRT)
def test_engines_are_inspected_in_detail(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    key = "Datatype" if version in STRONG_ONLY else "Format/Datatype"
    trt.set_network(make_network("HALF"))
    trt.script["EngineInspector.get_engine_information"] = make_inspection(
        "Row major linear FP16 format", "Half", "Float", key=key
    )
    result = run_build(trt, tmp_path, **FP16).result
    assert result.precision.proven_by == "engine inspector"
    assert result.precision.layers == {"HALF": 2, "FLOAT": 1}
    assert find_config(trt).profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    (asked,) = trt.calls.select("EngineInspector", "get_engine_information")
    assert asked.args == (trt.LayerInformationFormat.JSON,)


@pytest.mark.parametrize("version", TENSORRT)
def test_an_engine_that_lost_its_precision_is_not_kept(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network("HALF"))
    trt.script["EngineInspector.get_engine_information"] = make_inspection("Float", "Float")
    with pytest.raises(CompileError, match=r"finished engine has no float16 .*\{'FLOAT': 2\}"):
        run_build(trt, tmp_path, **FP16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("version", TENSORRT)
def test_an_engine_without_visible_types_is_judged_by_its_network_or_not_at_all(
    version: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network("HALF"))
    trt.script["EngineInspector.get_engine_information"] = make_inspection(
        "N/A due to dynamic shapes"
    )
    precision = run_build(trt, tmp_path, **FP16).result.precision
    if version in WEAK_ONLY:
        assert precision.proven_by.startswith("nothing: no layer shows float16")
    else:
        assert precision.proven_by == "strongly typed network"


INT8: dict[str, Any] = {"recipe": "int8", "low_dtype": "int8", "tf32": True}


@pytest.mark.parametrize("version", WEAK_ONLY + EITHER)
def test_weak_int8_sets_both_flags(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    trt.script["EngineInspector.get_engine_information"] = make_inspection("Int8", "Half")
    result = run_build(trt, tmp_path, typing="weak", fp32_nodes=("identity",), **INT8).result
    assert {"INT8", "FP16"} <= set(result.flags)
    assert list_set_flags(trt) == list(result.flags)
    assert trt.calls.select(member="int8_calibrator") == []  # the scales are in the Q/DQ nodes


@pytest.mark.parametrize("version", WEAK_ONLY)
def test_int8_typed_for_a_newer_version_is_refused(version: str, tmp_path: Path) -> None:
    trt = make_trt_module(version)
    with pytest.raises(NotPossibleError, match="FP32 scales") as caught:
        run_build(trt, tmp_path, **INT8)
    assert "typing=weak" in caught.value.hint
    assert trt.calls.select(member="build_serialized_network") == []


@pytest.mark.parametrize("version", STRONG)
@pytest.mark.parametrize(("recipe", "low", "kind"), [("int8", "int8", "INT8"),
                                                     ("fp8", "float8e4m3fn", "FP8")])  # fmt: skip
def test_strong_8_bits_touch_no_flag_and_must_be_there(
    version: str, recipe: str, low: str, kind: str, tmp_path: Path
) -> None:
    trt = make_trt_module(version)
    trt.set_network(make_network(kind))
    result = run_build(trt, tmp_path, recipe=recipe, low_dtype=low).result
    assert result.flags == ()
    for flag in PRECISION_FLAGS:
        assert trt.calls.select("BuilderFlag", flag) == []
    trt = make_trt_module(version)
    trt.set_network(make_network("HALF"))
    with pytest.raises(CompileError, match=low):
        run_build(trt, tmp_path, recipe=recipe, low_dtype=low)
