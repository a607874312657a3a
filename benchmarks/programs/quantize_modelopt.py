"""INT8 by NVIDIA Model-Optimizer: ``quantize_modelopt.py SOURCE TARGET DATA.npy METHOD``.

FP32 around the INT8 layers, which spares it a conversion to FP16.
"""

import sys

import numpy as np
from modelopt.onnx.quantization import quantize

source, target, data, method = sys.argv[1:]
quantize(
    source,
    quantize_mode="int8",
    calibration_data=np.load(data, mmap_mode="r"),
    calibration_method={"minmax": "max"}.get(method, method),
    calibration_eps=["cpu"],
    high_precision_dtype="fp32",
    output_path=target,
)
