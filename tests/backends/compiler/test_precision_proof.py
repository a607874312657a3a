"""The judge of precision reads what every TensorRT writes, and is not fooled by silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trtdeploy.backends.compiler.compile_request import PrecisionProof
from trtdeploy.backends.compiler.precision_proof import (
    prove_from_inspector,
    prove_from_network,
    read_layer_types,
)
from trtdeploy.core.errors import CompileError

NETWORK_PROOF = PrecisionProof("strongly typed network", {"HALF": 7})
UNKNOWN = "N/A due to dynamic shapes"


def make_layer(name: str, output: str = "", **fields: Any) -> dict[str, Any]:
    outputs = [{"Name": "o", "Format/Datatype": output}] if output else []
    return {"Name": name, "LayerType": "Generic", "Outputs": outputs, **fields}


def write(*layers: dict[str, Any] | str) -> str:
    return json.dumps({"Layers": layers, "Bindings": []})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        # TensorRT 8.6
        ("Row major linear FP32", "FLOAT"),
        ("Row major linear FP16 format", "HALF"),
        ("Channel major FP16 format where channel % 8 == 0", "HALF"),
        ("Two wide channel vectorized row major FP16 format", "HALF"),
        ("Thirty-two wide channel vectorized row major Int8 format.", "INT8"),
        ("Row major INT32 format", "INT32"),
        ("Row major Bool format", "BOOL"),
        # TensorRT 10.x and 11.x
        ("Half", "HALF"),
        ("Half(64,1:8,8,8)", "HALF"),
        ("Float", "FLOAT"),
        ("BFloat16", "BF16"),
        ("Row major linear BF16 format", "BF16"),
        ("FP8", "FP8"),
        ("FP8E4M3", "FP8"),
        ("Int8", "INT8"),
        ("Int64", "INT64"),
        # silence
        (UNKNOWN, "unknown"),
        ("", "unknown"),
        ("Halfway there", "unknown"),
    ],
)
@pytest.mark.parametrize("key", ["Format/Datatype", "Datatype"])
def test_spellings_of_output_types(text: str, kind: str, key: str) -> None:
    layer = {"Name": "n", "Outputs": [{"Name": "o", key: text}]}
    assert read_layer_types(write(layer)) == [("n", kind)]


def test_datatype_wins_over_the_format_of_tensorrt_11() -> None:
    output = {"Name": "o", "Format": "Row major linear FP32 format", "Datatype": "Half"}
    assert read_layer_types(write({"Name": "n", "Outputs": [output]})) == [("n", "HALF")]


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"Weights": {"Type": "Half", "Count": 9408}}, "HALF"),
        ({"Weights": {"Type": "Int8", "Count": 9}, "TacticName": "x_f32f32_y"}, "INT8"),
        ({"TacticName": "sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x64x64"}, "HALF"),
        ({"TacticName": "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn"}, "BF16"),
        ({"TacticName": "sm80_xmma_fprop_implicit_gemm_interleaved_i8i8_i8i32_f32"}, "INT8"),
        ({"TacticName": "sm80_xmma_gemm_i8f32_i8i32_f32_by_fusion_tactic"}, "INT8"),
        ({"TacticName": "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n"}, "FLOAT"),
        ({"TacticName": "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn"}, "FP8"),
        ({"TacticName": "turing_h1688cudnn_256x64_ldg8"}, "unknown"),
        ({"TacticName": "ampere_fp16_h16816_gemm_64x64"}, "HALF"),
        ({"TacticName": "0x0000000000000000"}, "unknown"),
    ],
)
def test_layers_of_dynamic_shape_show_weights_or_kernel(fields: dict[str, Any], kind: str) -> None:
    assert read_layer_types(write(make_layer("n", UNKNOWN, **fields))) == [("n", kind)]


def test_a_kernel_says_more_than_an_output() -> None:
    layer = make_layer("last", "Float", TacticName="sm80_xmma_gemm_f16f16_f16f32_f32")
    assert read_layer_types(write(layer)) == [("last", "HALF")]


def test_counts_and_layers_are_reported() -> None:
    text = write(make_layer("a", "Half"), make_layer("b", "Float"), make_layer("c", "Half"))
    assert prove_from_inspector(text, "float16", None) == PrecisionProof(
        "engine inspector", {"HALF": 2, "FLOAT": 1}, {"a": "HALF", "b": "FLOAT", "c": "HALF"}
    )


@pytest.mark.parametrize("network_proof", [None, NETWORK_PROOF])
@pytest.mark.parametrize("low_dtype", ["float16", "bfloat16", "int8", "float8e4m3fn"])
def test_a_lost_precision_is_an_error(low_dtype: str, network_proof: PrecisionProof | None) -> None:
    text = write(make_layer("a", "Float"), make_layer("b", "Int32"))
    with pytest.raises(CompileError, match=f"finished engine has no {low_dtype} layer") as info:
        prove_from_inspector(text, low_dtype, network_proof)
    assert info.value.exit_code == 6


def test_nothing_is_required_of_fp32() -> None:
    proof = prove_from_inspector(write(make_layer("a", "Float")), "", NETWORK_PROOF)
    assert proof.proven_by == "engine inspector"


SILENT = {
    "dynamic shapes": write(make_layer("a", "Float"), make_layer("b", UNKNOWN)),
    "a fused sub-graph": write(make_layer("{ForeignNode[a...b]}", "Float", LayerType="Myelin")),
    "names only": write("conv", "relu"),
    "no layers": write(),
    "a quote in a layer name": '{"Layers": [{"Name": "a"b"}]}',
    "nothing": "",
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT.keys())
def test_silence_neither_proves_nor_condemns(text: str) -> None:
    proof = prove_from_inspector(text, "float16", None)
    assert proof.proven_by == "nothing: no layer shows float16, some show no type"
    strong = prove_from_inspector(text, "float16", NETWORK_PROOF)
    assert (strong.proven_by, strong.layers) == ("strongly typed network", {"HALF": 7})


def test_separators_in_metadata_are_read() -> None:
    text = '{"Layers": [{"Name": "a", "Metadata": "[ONNX Layer: x]\x1f[ONNX Layer: y]"}]}'
    assert read_layer_types(text) == [("a", "unknown")]


def test_a_network_must_have_the_type() -> None:
    counts = {"HALF": 3, "FLOAT": 1}
    proof = prove_from_network(counts, "float16")
    assert proof == PrecisionProof("strongly typed network", {"FLOAT": 1, "HALF": 3})
    assert prove_from_network({"FLOAT": 1}, "").layers == {"FLOAT": 1}
    with pytest.raises(CompileError, match="strongly typed network has no int8 layer"):
        prove_from_network(counts, "int8")
    with pytest.raises(CompileError, match="it has no layers"):
        prove_from_network({}, "float16")
