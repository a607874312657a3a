"""Q/DQ files of Model-Optimizer: ``write_qdq_modelopt.py SOURCE FOLDER INPUT:1x3x64x64 ...``.

Writes one file per setting; a setting that fails writes ``NAME.failed``.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from modelopt.onnx.quantization import quantize

SETTINGS = {
    "int8": {"quantize_mode": "int8"},
    "int8-fp32": {"quantize_mode": "int8", "high_precision_dtype": "fp32"},
    "int8-max": {"quantize_mode": "int8", "calibration_method": "max"},
    "int8-dq-only": {"quantize_mode": "int8", "dq_only": True, "high_precision_dtype": "fp32"},
    "fp8": {"quantize_mode": "fp8"},
    "fp8-fp32": {"quantize_mode": "fp8", "high_precision_dtype": "fp32"},
    "int4": {"quantize_mode": "int4", "high_precision_dtype": "fp16"},
}


def main():
    """Quantize in every setting."""
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    texts = sys.argv[3:]
    shapes = {}
    for text in texts:
        name, _, dims = text.rpartition(":")
        shapes[name] = [int(dim) for dim in dims.split("x")]
    model = onnx.load(source)
    rng = np.random.default_rng(0)
    data = {}
    for value in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = shapes.get(value.name, [])
        if np.issubdtype(dtype, np.integer):
            data[value.name] = rng.integers(0, 2, dims).astype(dtype)
        else:
            data[value.name] = rng.uniform(0, 1, dims).astype(dtype)
    for name, setting in SETTINGS.items():
        target = folder / f"{source.stem}.modelopt.{name}.onnx"
        try:
            quantize(
                str(source),
                calibration_data=data,
                calibration_eps=["cpu"],
                calibration_shapes=",".join(texts),
                output_path=str(target),
                **setting,
            )
        except BaseException as error:
            target.with_suffix(".failed").write_text(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
