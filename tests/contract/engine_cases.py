"""What the tests of the engine builder share: models, requests, and questions to the record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from trtdeploy.backends.compiler.compile_request import CompileRequest, CompileResult, EngineSpec
from trtdeploy.backends.compiler.engine_builder import build_engine
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.config.recipe import FP32, RECIPES

from .standin import VERSIONS, LayerContent, NetworkContent, StandinModule, TensorContent

RTX: Final = [v for v in VERSIONS if v.startswith("rtx-")]
TENSORRT: Final = [v for v in VERSIONS if v not in RTX]
WEAK_ONLY: Final = [v for v in VERSIONS if v.startswith("8.")]
EITHER: Final = [v for v in VERSIONS if v.startswith("10.")]
STRONG_ONLY: Final = [v for v in VERSIONS if v.startswith("11.")]
STRONG: Final = [*EITHER, *STRONG_ONLY, *RTX]

PRECISION_FLAGS: Final = (
    "FP16", "BF16", "INT8", "FP8", "INT4", "FP4", "STRICT_TYPES",
    "OBEY_PRECISION_CONSTRAINTS", "PREFER_PRECISION_CONSTRAINTS",
)  # fmt: skip


@dataclass(frozen=True)
class Build:
    """A finished build: its result, and the phases that it reported."""

    result: CompileResult
    phases: list[str]


def run_build(
    trt: StandinModule, folder: Path, options: Mapping[str, Any] | None = None, **fields: Any
) -> Build:
    """Build with options of `BuildSection`, unchecked, and fields of `EngineSpec`."""
    phases: list[str] = []
    recipe = RECIPES[fields.get("recipe", FP32.name)]
    request = CompileRequest(
        model_path=str(folder / "model.onnx"),
        engine_path=str(folder / "model.engine"),
        fp32_nodes=fields.pop("fp32_nodes", ()),
        timing_cache_path=fields.pop("timing_cache_path", None),
        weak_flags=fields.pop("weak_flags", recipe.weak_flags),
        options=BuildSection.model_construct(**(options or {})),
        spec=EngineSpec(trt.__name__, **fields),
    )
    return Build(build_engine(trt, request, phases.append), phases)


def make_network(dtype: str = "FLOAT") -> NetworkContent:
    """Return input (Cast) -> conv -> relu -> output (Cast) that computes in `dtype`."""
    return NetworkContent(
        inputs=(TensorContent("x"),),
        layers=(
            LayerContent("cast_in", "CAST", ("x",), (TensorContent("x_low", dtype),)),
            LayerContent("conv", "CONVOLUTION", ("x_low",), (TensorContent("c", dtype),)),
            LayerContent("relu", "ACTIVATION", ("c",), (TensorContent("r", dtype),)),
            LayerContent("cast_out", "CAST", ("r",), (TensorContent("y"),)),
        ),
        outputs=("y",),
    )


def make_inspection(*dtypes: str, key: str = "Format/Datatype") -> str:
    """Return the engine inspector's JSON for layers whose outputs have the given types."""
    layers = [
        {"Name": f"layer{i}", "LayerType": "Generic", "Outputs": [{"Name": "o", key: dtype}]}
        for i, dtype in enumerate(dtypes)
    ]
    return json.dumps({"Layers": layers, "Bindings": ["x", "y"]})


def list_set_flags(trt: StandinModule) -> list[str]:
    """Return the names of the builder flags that were set, in order."""
    return [record.args[0].name for record in trt.calls.select("IBuilderConfig", "set_flag")]  # type: ignore[attr-defined]  # an enum member


def find_config(trt: StandinModule) -> Any:
    """Return the config that the (last) build used."""
    return trt.calls.select("Builder", "build_serialized_network")[-1].args[1]


def list_networks(trt: StandinModule) -> list[object]:
    """Return the flags of every network that was created."""
    return [record.args[0] for record in trt.calls.select("Builder", "create_network")]
