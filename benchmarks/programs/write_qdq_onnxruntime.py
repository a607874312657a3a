"""Q/DQ files by ONNX Runtime: ``write_qdq_onnxruntime.py SOURCE FOLDER INPUT:1x3x64x64 ...``.

Writes one file per setting of ``quantize_static``; a setting that fails writes ``NAME.failed``.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_static,
)

FP8 = QuantType.QFLOAT8E4M3FN
SYMMETRIC = {"ActivationSymmetric": True, "WeightSymmetric": True}
FLOAT_BIAS = {**SYMMETRIC, "QuantizeBias": False}
SETTINGS = {
    "default": {},
    "per-channel": {"per_channel": True},
    "reduce-range": {"reduce_range": True},
    "uint8-activations": {"activation_type": QuantType.QUInt8},
    "uint8-both": {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QUInt8},
    "symmetric": {"extra_options": SYMMETRIC},
    "symmetric-per-channel": {"per_channel": True, "extra_options": SYMMETRIC},
    "symmetric-uint8": {
        "activation_type": QuantType.QUInt8,
        "extra_options": {**SYMMETRIC, "ForceQuantizeNoInputCheck": True},
    },
    "float-bias": {"extra_options": FLOAT_BIAS},
    "float-bias-per-channel": {"per_channel": True, "extra_options": FLOAT_BIAS},
    "float-bias-asymmetric": {"extra_options": {"QuantizeBias": False}},
    "dedicated-pairs": {"extra_options": {**FLOAT_BIAS, "DedicatedQDQPair": True}},
    "weights-in-pairs": {"extra_options": {**FLOAT_BIAS, "AddQDQPairToWeight": True}},
    "convolutions-only": {
        "op_types_to_quantize": ["Conv", "ConvTranspose", "Gemm", "MatMul"],
        "per_channel": True,
        "extra_options": FLOAT_BIAS,
    },
    "int16-activations": {
        "activation_type": QuantType.QInt16,
        "extra_options": {**FLOAT_BIAS, "UseQDQContribOps": False},
    },
    "int4-weights": {"weight_type": QuantType.QInt4, "extra_options": FLOAT_BIAS},
    "contrib-operators": {"extra_options": {**FLOAT_BIAS, "UseQDQContribOps": True}},
    "qoperator": {"quant_format": QuantFormat.QOperator},
    "fp8": {
        "activation_type": FP8,
        "weight_type": FP8,
        "calibrate_method": CalibrationMethod.Distribution,
        "extra_options": {"scenario": "same"},
    },
    "fp8-float-bias": {
        "activation_type": FP8,
        "weight_type": FP8,
        "calibrate_method": CalibrationMethod.Distribution,
        "extra_options": {"scenario": "same", **FLOAT_BIAS},
    },
}


class RandomReader(CalibrationDataReader):
    """A few samples of noise: their values do not decide what a parser refuses."""

    def __init__(self, model, shapes):
        rng = np.random.default_rng(0)
        self._samples = iter([make_feeds(model, shapes, rng) for _ in range(3)])

    def get_next(self):
        """Return the next sample, None at the end."""
        return next(self._samples, None)


def make_feeds(model, shapes, rng):
    """Return noise for every input."""
    feeds = {}
    for value in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if value.name in {t.name for t in model.graph.initializer}:
            continue
        dims = shapes.get(value.name, [])
        if np.issubdtype(dtype, np.integer):
            feeds[value.name] = rng.integers(0, 2, dims).astype(dtype)
        else:
            feeds[value.name] = rng.uniform(0, 1, dims).astype(dtype)
    return feeds


def main():
    """Quantize in every setting."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    shapes = {}
    for text in sys.argv[3:]:
        name, _, dims = text.rpartition(":")
        shapes[name] = [int(dim) for dim in dims.split("x")]
    model = onnx.load(source)
    for name, setting in SETTINGS.items():
        target = folder / f"{source.stem}.ort.{name}.onnx"
        try:
            quantize_static(source, target, RandomReader(model, shapes), **setting)
        except Exception as error:
            target.with_suffix(".failed").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
