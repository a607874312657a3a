"""INT8 by ONNX Runtime: ``write_int8_onnxruntime.py SOURCE TARGET SAMPLES.npz METHOD all|layers``.

In the form that TensorRT reads: symmetric, weights per channel, biases in floating point; after
ONNX Runtime's own preparation, as its documentation wants it. ``all`` quantizes what it does by
default, ``layers`` convolutions and matrix products alone.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

source, target, samples, method, operators = sys.argv[1:]
METHODS = {"entropy": CalibrationMethod.Entropy, "minmax": CalibrationMethod.MinMax}
LAYERS = ["Conv", "ConvTranspose", "Gemm", "MatMul"]


class SampleReader(CalibrationDataReader):
    """The samples of a file, one by one."""

    def __init__(self):
        data = dict(np.load(samples))
        count = len(next(iter(data.values())))
        self._feeds = ({n: v[i : i + 1] for n, v in data.items()} for i in range(count))

    def get_next(self):
        """Return the next feeds; None at the end."""
        return next(self._feeds, None)


with tempfile.TemporaryDirectory() as folder:
    prepared = Path(folder) / "prepared.onnx"
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    quantize_static(
        prepared,
        target,
        SampleReader(),
        quant_format=QuantFormat.QDQ,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        per_channel=True,
        calibrate_method=METHODS[method],
        op_types_to_quantize=None if operators == "all" else LAYERS,
        extra_options={
            "ActivationSymmetric": True,
            "WeightSymmetric": True,
            "QuantizeBias": False,
            "QDQDisableWeightAdjustForInt32Bias": True,  # there are none; it fails on magika
        },
    )
