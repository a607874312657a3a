"""INT8 by Model-Optimizer: ``write_int8_modelopt.py SOURCE TARGET SAMPLES.npz METHOD``.

FP32 around the INT8 layers, and everything else as it decides by itself; one sample at a time.
"""

import sys

import numpy as np
from modelopt.onnx.quantization import quantize

source, target, samples, method = sys.argv[1:]
data = dict(np.load(samples))
shapes = {name: (1, *values.shape[1:]) for name, values in data.items()}
quantize(
    source,
    quantize_mode="int8",
    calibration_data=data,
    calibration_method={"minmax": "max"}.get(method, method),
    calibration_shapes=",".join(f"{n}:{'x'.join(map(str, dims))}" for n, dims in shapes.items()),
    calibration_eps=["cpu"],
    high_precision_dtype="fp32",
    output_path=target,
)
