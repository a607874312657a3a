"""INT8 by ONNX Runtime: ``quantize_onnxruntime.py SOURCE TARGET DATA.npy METHOD``.

Symmetric and per channel, which is the form that TensorRT reads; one image at a time.
"""

import sys

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

source, target, data, method = sys.argv[1:]
METHODS = {"entropy": CalibrationMethod.Entropy, "minmax": CalibrationMethod.MinMax}


class ImageReader(CalibrationDataReader):
    """Images of a file that stays on the disk."""

    def __init__(self):
        name = onnx.load(source, load_external_data=False).graph.input[0].name
        images = np.load(data, mmap_mode="r")
        self._feeds = ({name: np.array(images[i : i + 1])} for i in range(len(images)))

    def get_next(self):
        """Return the next feeds; None at the end."""
        return next(self._feeds, None)


quantize_static(
    source,
    target,
    ImageReader(),
    quant_format=QuantFormat.QDQ,
    activation_type=QuantType.QInt8,
    weight_type=QuantType.QInt8,
    per_channel=True,
    calibrate_method=METHODS[method],
    extra_options={"ActivationSymmetric": True, "WeightSymmetric": True},
)
