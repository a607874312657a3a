"""The least that makes the same engine: ``compile_bare.py MODEL REQUEST.json ENGINE``.

REQUEST.json holds ``compute_capabilities`` and the ``optimization_profiles`` of the manifest.
"""

import json
import sys
from pathlib import Path

import tensorrt_rtx as trt

model, request_path, engine = sys.argv[1:]
request = json.loads(Path(request_path).read_text(encoding="utf-8"))
logger = trt.Logger(trt.Logger.WARNING)
builder = trt.Builder(logger)
network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
parser = trt.OnnxParser(network, logger)
if not parser.parse_from_file(model):
    sys.exit("; ".join(parser.get_error(i).desc() for i in range(parser.num_errors)))
config = builder.create_builder_config()
config.num_compute_capabilities = len(request["compute_capabilities"])
for position, name in enumerate(request["compute_capabilities"]):
    config.set_compute_capability(getattr(trt.ComputeCapability, name), position)
inputs = [network.get_input(position) for position in range(network.num_inputs)]
if any(tensor.is_shape_tensor or -1 in tuple(tensor.shape) for tensor in inputs):
    for table in request["optimization_profiles"]:
        profile = builder.create_optimization_profile()
        for key, setter in (("shapes", profile.set_shape), ("values", profile.set_shape_input)):
            for name, points in table[key].items():
                setter(name, *(tuple(points[point]) for point in ("min", "opt", "max")))
        config.add_optimization_profile(profile)
plan = builder.build_serialized_network(network, config)
if plan is None:
    sys.exit("the builder returned no engine")
Path(engine).write_bytes(memoryview(plan))
