"""FP16 typing by onnxconverter-common: ``type_onnxconverter_common.py SOURCE TARGET``."""

import sys

import onnx
from onnxconverter_common.float16 import convert_float_to_float16

model = convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=True)
onnx.save_model(model, sys.argv[2])
