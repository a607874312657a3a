"""Check and compile a Q/DQ file: ``judge_qdq.py FILE INPUT:1x3x64x64 ...``.

Prints one JSON line for trtdeploy's check, which is not told what the parser says, and one for
TensorRT-RTX (SM89), which gets the file with those constants folded that a build folds.
"""

import json
import sys
import tempfile
from collections import Counter
from pathlib import Path

import tensorrt_rtx as trt

from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass
from trtdeploy.graph.passes.fold_integer_bias import FoldIntegerBiasPass
from trtdeploy.graph.saving import save_model
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.target import CheckTarget

FLOAT16 = 10


def main() -> None:
    """Judge the file twice."""
    model = load_model(Path(sys.argv[1]))
    shapes = {}
    for text in sys.argv[2:]:
        name, _, dims = text.rpartition(":")
        shapes[name] = tuple(int(dim) for dim in dims.split("x"))
    print(json.dumps(check(model, shapes)), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        prepared = model.copy()
        AdoptContribQuantizationPass()(prepared)
        FoldIntegerBiasPass()(prepared)
        save_model(prepared, Path(folder) / "prepared.onnx")
        print(json.dumps(compile_model(Path(folder) / "prepared.onnx", shapes)), flush=True)


def check(model, shapes):
    """Return what the check says without a parser."""
    is_fp16 = any(tensor.data_type == FLOAT16 for tensor in model.graph.initializer)
    target = CheckTarget("tensorrt_rtx", recipe=find_recipe("fp16" if is_fp16 else "fp32"))
    sizes = OptimizationProfile(
        "files", {name: ShapeRange(dims, dims, dims) for name, dims in shapes.items()}, {}
    )
    report = check_model(model, target=target, optimization_profiles=(sizes,))
    blockers = [finding for finding in report.findings if finding.blocks_engine]
    audit = [f.message for f in report.findings if f.code == "quantization-audit"]
    return {
        "verdict": "refused" if blockers else "accepted",
        "codes": Counter(finding.code for finding in blockers),
        "nodes": sorted({finding.node for finding in blockers}),
        "audit": audit[0].partition(" In the way")[0] if audit else "",
    }


def compile_model(path, shapes):
    """Return what parser and builder say."""
    logger = trt.Logger(trt.Logger.Severity.INTERNAL_ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(path)):
        error = parser.get_error(0)
        return {"verdict": "refused", "by": "parser", "node": error.node_name()}
    config = builder.create_builder_config()
    config.num_compute_capabilities = 1
    config.set_compute_capability(trt.ComputeCapability.SM89, 0)
    sizes = builder.create_optimization_profile()
    inputs = [network.get_input(position) for position in range(network.num_inputs)]
    dynamic = [tensor for tensor in inputs if -1 in tuple(tensor.shape)]
    for tensor in dynamic:
        sizes.set_shape(tensor.name, *[shapes[tensor.name]] * 3)
    if dynamic:
        config.add_optimization_profile(sizes)
    if builder.build_serialized_network(network, config) is None:
        return {"verdict": "refused", "by": "builder", "node": ""}
    return {"verdict": "accepted", "by": "", "node": ""}


if __name__ == "__main__":
    main()
