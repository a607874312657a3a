"""FP16 typing by NVIDIA Model-Optimizer's autocast: ``type_modelopt.py SOURCE TARGET``."""

import sys

import onnx
from modelopt.onnx.autocast import convert_to_mixed_precision

model = convert_to_mixed_precision(
    onnx_path=sys.argv[1], low_precision_type="fp16", keep_io_types=True
)
onnx.save_model(model, sys.argv[2])
