"""Measure what the installed TensorRT-RTX parser and ONNX Runtime support.

Rewrites the sections ``tensorrt_rtx`` and ``onnxruntime`` of
``trtdeploy/preflight/operator_support.json``; the section ``tensorrt`` was recorded by hand from
the tables of onnx-tensorrt, because no TensorRT parser can be installed without its libraries.

Usage::

    python tests/preflight/regenerate_operator_support.py
"""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from importlib import resources
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import tensorrt_rtx as trt
from onnx import defs
from onnx.backend.test.case.node import collect_testcases
from onnxruntime.capi import onnxruntime_pybind11_state as ort_state

SUPPORT_FILE = Path(str(resources.files("trtdeploy.preflight") / "operator_support.json"))
PLUGIN_CANDIDATES = (
    "BatchedNMS_TRT", "EfficientNMS_TRT", "InstanceNormalization_TRT", "ROIAlign_TRT",
    "TRT_DynamicQuantize", "TRT_FP4DynamicQuantize", "TRT_FP8DequantizeLinear",
    "TRT_FP8QuantizeLinear", "TRT_INT4DequantizeLinear", "TRT_INT4QuantizeLinear",
    "TRT_MXFP8DequantizeLinear", "TRT_MXFP8DynamicQuantize", "TRT_MXFP8QuantizeLinear",
)  # fmt: skip
"""Operators of no ONNX domain that exporters for TensorRT write."""
_PLUGIN_WORDS = re.compile(r"plugin", re.IGNORECASE)


class _SilentLogger(trt.ILogger):  # type: ignore[misc]
    """Drops the parser's log; the error list says the same."""

    def __init__(self) -> None:
        trt.ILogger.__init__(self)

    def log(self, severity: object, text: str) -> None:
        """Ignore ``text``."""


class ParserProbe:
    """Asks the TensorRT-RTX parser about operators and whole models."""

    def __init__(self) -> None:
        self._logger = _SilentLogger()
        self._builder = trt.Builder(self._logger)

    def _make_parser(self) -> tuple[Any, Any]:
        flags = 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
        network = self._builder.create_network(flags)
        return network, trt.OnnxParser(network, self._logger)

    def supports(self, operator: str) -> bool:
        """Return the parser's own answer about one operator name."""
        _network, parser = self._make_parser()  # a parser without its network crashes
        return bool(parser.supports_operator(operator))

    def parse(self, model: onnx.ModelProto) -> list[tuple[str, str]]:
        """Return (operator, text) of every error of a full parse."""
        _network, parser = self._make_parser()
        if parser.parse(model.SerializeToString()):
            return []
        errors = [parser.get_error(i) for i in range(parser.num_errors)]
        return [(error.node_operator(), error.desc()) for error in errors]


def standard_operators() -> list[str]:
    """Return every operator name the default domain has ever had."""
    return sorted({s.name for s in defs.get_all_schemas_with_history() if s.domain == ""})


def measure_tensorrt_rtx() -> dict[str, object]:
    """Return the section ``tensorrt_rtx``."""
    probe = ParserProbe()
    names = standard_operators()
    supported = [name for name in names if probe.supports(name)]
    return {
        "version": trt.__version__,
        "source": f"OnnxParser.supports_operator of TensorRT-RTX {trt.__version__} over the "
        f"operators of onnx {onnx.__version__}; needs_plugin: node tests of onnx that it refuses "
        "for want of a plugin",
        "supported": supported,
        "unsupported": [name for name in names if name not in supported],
        "needs_plugin": measure_missing_plugins(probe, set(supported)),
        "plugins": [name for name in PLUGIN_CANDIDATES if probe.supports(name)],
    }


def measure_missing_plugins(probe: ParserProbe, supported: set[str]) -> list[str]:
    """Return operators that the parser claims to support but never imports for want of a plugin."""
    refused: dict[str, bool] = defaultdict(bool)
    accepted: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        if case.model is None:
            continue
        operators = {node.op_type for node in case.model.graph.node}
        errors = probe.parse(case.model)
        if not errors:
            accepted |= operators
        for operator, text in errors:
            refused[operator] |= bool(_PLUGIN_WORDS.search(text))
    return sorted(
        name for name, plugin in refused.items() if plugin and name in supported - accepted
    )


def measure_onnxruntime() -> dict[str, object]:
    """Return the section ``onnxruntime``."""
    kernels: dict[str, set[str]] = defaultdict(set)
    for kernel in ort_state.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider":
            kernels[kernel.domain].add(kernel.op_name)
    schemas: dict[str, set[str]] = defaultdict(set)
    for schema in ort_state.get_all_operator_schema():
        schemas[schema.domain].add(schema.name)
    bodies = {
        s.name
        for s in defs.get_all_schemas_with_history()
        if s.domain == "" and (s.has_function or s.has_context_dependent_function)
    }
    names = standard_operators()
    runnable = kernels[""] | bodies | {"Constant"}  # constants are folded before kernels are sought
    return {
        "version": onnxruntime.__version__,
        "source": f"CPU kernels of onnxruntime {onnxruntime.__version__}; limits found by loading "
        "a Relu at rising opset and IR versions",
        "max_opset": measure_limit(lambda value: (value, 10)),
        "max_ir": measure_limit(lambda value: (17, value)),
        "min_opset": 7,
        "unsupported": [name for name in names if name not in runnable],
        "extra": sorted(kernels[""] - set(names)),
        "contrib": {
            domain: sorted(kernels[domain])
            for domain in ("com.microsoft", "com.microsoft.nchwc", "ai.onnx.ml")
        },
        "contrib_without_kernel": sorted(schemas["com.microsoft"] - kernels["com.microsoft"]),
    }


def measure_limit(versions: Any) -> int:
    """Return the largest number that still loads; ``versions`` maps it to (opset, IR version)."""
    onnxruntime.set_default_logger_severity(4)
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    value = 10
    while True:
        opset, ir_version = versions(value + 1)
        model = onnx.helper.make_model(
            graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=ir_version
        )
        try:
            onnxruntime.InferenceSession(
                model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
        except (onnxruntime.capi.onnxruntime_pybind11_state.Fail, RuntimeError):
            return value
        value += 1


def main() -> None:
    """Rewrite the measured sections."""
    content = json.loads(SUPPORT_FILE.read_text(encoding="utf-8"))
    content["tensorrt_rtx"] = measure_tensorrt_rtx()
    content["onnxruntime"] = measure_onnxruntime()
    SUPPORT_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
