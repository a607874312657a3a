"""Sound models, which must pass for every target."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto

from tests.builders import (
    BOOL,
    FLOAT,
    INT64,
    UINT8,
    branch_model,
    chain,
    constant,
    loop_model,
    model,
    op,
    random_array,
    value,
)
from tests.preflight.models import (
    MakeModel,
    convolution,
    dropout,
    image,
    ints,
    local_function,
    normalization,
    quantized,
    reshape_to,
    tied_inputs,
    with_versions,
)


def integer_borders() -> ModelProto:
    """Read uint8, bool and int64 at the border, as TensorRT allows; look uint8 up in a constant."""
    nodes = [
        op("Cast", "image", "f", "to_float", to=FLOAT),
        op("Gather", "table ids", "row", "embed", axis=0),
        op("Cast", "row", "rf", "row_float", to=FLOAT),
        op("Where", "use rf zero", "e", "where"),
        op("Add", "f e", "y", "add"),
        op("Cast", "y", "u", "to_uint8", to=UINT8),
    ]
    inputs = [
        value("image", ("N", 4), UINT8),
        value("ids", (1,), INT64),
        value("use", (1,), BOOL),
    ]
    constants = [constant("table", np.ones((10, 4)), np.uint8), constant("zero", 0.0)]
    return model(nodes, inputs, [value("y"), value("u", ("N", 4), UINT8)], constants)


def dynamic_flatten() -> ModelProto:
    """Compute the target of a Reshape from the batch, as a good export does."""
    nodes = [
        op("Shape", "x", "s", "shape"),
        op("Gather", "s i0", "n", "batch", axis=0),
        op("Unsqueeze", "n i1", "n1", "wrap"),
        op("Concat", "n1 rest", "t", "target", axis=0),
        op("Reshape", "x t", "y", "flatten"),
    ]
    constants = [constant("i0", 0, np.int64), ints("i1", 0), ints("rest", -1)]
    return model(nodes, [image()], [value("y", None)], constants)


def old_weights_as_inputs() -> ModelProto:
    nodes = [op("MatMul", "x w", "y", "mm")]
    inputs = [value("x", ("N", 4)), value("w", (4, 4))]
    proto = model(nodes, inputs, [value("y")], [constant("w", random_array(4, 4))], opset=9)
    return with_versions(proto, ir=3)


HEALTHY: dict[str, MakeModel] = {
    "chain": lambda: chain(["Relu", "Neg", "Exp"]),
    "convolution": convolution,
    "quantized": quantized,
    "inference batch norm": normalization,
    "inference dropout": lambda: dropout(training=False),
    "integer borders": integer_borders,
    "dynamic flatten": dynamic_flatten,
    "reshape that keeps the batch": lambda: reshape_to(0, -1),
    "reshape that infers the batch": lambda: reshape_to(-1, 192),
    "tied inputs": lambda: tied_inputs("S"),
    "local function": local_function,
    "weights as inputs": old_weights_as_inputs,
    "branches": lambda: branch_model([op("Relu", "x", "t")], [op("Neg", "x", "e")]),
    "loop": lambda: loop_model([op("Add", "s c", "s_next")], [constant("c", [1.0])]),
}
