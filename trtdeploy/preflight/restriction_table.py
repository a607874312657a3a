"""Limits of single operators, as data.

Sources: [D] docs/operators.md of onnx-tensorrt for TensorRT 10.15 (column Restrictions);
[C] its docs/Changelog.md; [M] measured with TensorRT-RTX 1.7.1 on the node tests of onnx.
"""

from __future__ import annotations

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.restriction import (
    ALL_TENSORRT,
    BOTH_ENGINES,
    RTX,
    AttributeValues,
    BuildTimeOperand,
    InputRank,
    InputTypes,
    OneOutput,
    OperandLimit,
    Restriction,
)

_BOOL = frozenset({DType.BOOL})
_FLOATS = frozenset({DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16, DType.FLOAT64})
_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
_COORDINATES = (
    "half_pixel", "pytorch_half_pixel", "tf_half_pixel_for_nn", "asymmetric", "align_corners",
)  # fmt: skip
_CONSTANT_AXES = "Write the axes as a constant when exporting."
_PLAIN_RESIZE = "Export the Resize in a plain mode (half_pixel or asymmetric, no antialiasing)."

RESTRICTIONS: tuple[Restriction, ...] = (
    # outputs [D, M]
    OneOutput(("MaxPool",), BOTH_ENGINES, "Export without return_indices; use ArgMax if needed."),
    OneOutput(
        ("LayerNormalization", "Attention"), BOTH_ENGINES, "Drop the further outputs on export."
    ),
    # attributes [D, M]
    AttributeValues(
        ("AveragePool", "MaxPool", "LpPool"),
        BOTH_ENGINES,
        "Use a pooling without dilation.",
        "dilations",
        (1,),
    ),
    AttributeValues(("LpPool",), BOTH_ENGINES, "Use the L1 or the L2 norm.", "p", (1, 2)),
    AttributeValues(
        ("ScatterND",),
        BOTH_ENGINES,
        "Use ScatterElements, or compute the sum with OneHot and MatMul.",
        "reduction",
        ("none",),
    ),
    AttributeValues(  # [C]: came with TensorRT 10.0; [M]: absent from TensorRT-RTX
        ("ScatterElements",),
        ("tensorrt<10", RTX),
        "Compute the reduction with OneHot and MatMul.",
        "reduction",
        ("none",),
    ),
    AttributeValues(("Resize",), BOTH_ENGINES, _PLAIN_RESIZE, "antialias", (0,)),
    AttributeValues(
        ("Resize",), BOTH_ENGINES, _PLAIN_RESIZE, "keep_aspect_ratio_policy", ("stretch",)
    ),
    AttributeValues(
        ("Resize",), BOTH_ENGINES, _PLAIN_RESIZE, "coordinate_transformation_mode", _COORDINATES
    ),
    AttributeValues(  # [M]: TensorRT-RTX builds unsorted TopK
        ("TopK",), (ALL_TENSORRT,), "Ask for sorted results: a valid answer too.", "sorted", (1,)
    ),
    AttributeValues(
        ("LSTM",), BOTH_ENGINES, "Use an LSTM with separate input and forget gates.",
        "input_forget", (0,),
    ),
    AttributeValues(  # [D]; [M]: TensorRT-RTX accepts layout 1
        ("LSTM",), (ALL_TENSORRT,), "Put the sequence first (batch_first=False).", "layout", (0,)
    ),
    AttributeValues(
        ("Attention",), BOTH_ENGINES, "Write the attention as MatMul and Softmax.",
        "softcap", (0.0,),
    ),
    AttributeValues(
        ("Attention",), BOTH_ENGINES, "Write the attention as MatMul and Softmax.",
        "softmax_precision", (),
    ),
    AttributeValues(
        ("TensorScatter",), BOTH_ENGINES, "Update the cache without wrapping.", "mode", ("linear",)
    ),
    # sizes and types
    InputRank(  # [D]; [M]: TensorRT-RTX builds 5 axes
        ("GridSample",), (ALL_TENSORRT,), "Sample slice by slice, or resize in two steps.", 4
    ),
    OperandLimit(  # [D]; [M]: "K exceeds the maximum value allowed (3840)", while building
        ("TopK",), BOTH_ENGINES, "Take at most 3840, or filter by a threshold outside.", 1, 3840
    ),
    InputTypes(  # [M]: parses, but no kernel implements it
        ("NonMaxSuppression",), BOTH_ENGINES, "Cast boxes and scores to FLOAT.",
        frozenset({DType.FLOAT64, DType.BFLOAT16}),
    ),
    InputTypes(
        _REDUCTIONS, BOTH_ENGINES, "Cast the booleans to INT32 or FLOAT first.", _BOOL
    ),
    InputTypes(
        ("Mod",), BOTH_ENGINES, "Set fmod to 1, or cast to an integer type first.", _FLOATS,
        attribute=("fmod", 0),
    ),
    InputTypes(
        ("Clip",), ("tensorrt", RTX), "Cast to INT32 or FLOAT first.", frozenset({DType.INT8})
    ),
    InputTypes(
        ("Range",), (RTX,), "Make the range in FLOAT or integers and cast the result.",
        frozenset({DType.FLOAT16, DType.BFLOAT16}),
    ),
    # operands [D, M]
    BuildTimeOperand(_REDUCTIONS, BOTH_ENGINES, _CONSTANT_AXES, 1),
    BuildTimeOperand(
        ("Squeeze", "Unsqueeze"), BOTH_ENGINES, _CONSTANT_AXES, 1, shapes_are_known=True
    ),
    BuildTimeOperand(
        ("OneHot",), (ALL_TENSORRT,), "Write the depth as a constant.", 1, shapes_are_known=True
    ),
    BuildTimeOperand(
        ("CumSum",), (ALL_TENSORRT,), _CONSTANT_AXES, 1, shapes_are_known=True
    ),
    BuildTimeOperand(("STFT",), BOTH_ENGINES, "Write the frame step as a constant.", 1),
)  # fmt: skip
"""Every limit that is checked before a build."""
