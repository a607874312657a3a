"""A model of several gibibytes that takes almost no room on the disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, save_model

_SIDE = 8192
_FLOAT_BYTES = 4


def write_big_model(path: Path, matrices: int = 16, side: int = _SIDE) -> int:
    """Write a chain of matrix products whose weights lie in a sparse external data file.

    Each matrix is zero but for its diagonal, so the file is mostly a hole, which a reader sees as
    ordinary bytes. The default is 16 matrices of 256 MiB, 4 GiB together.

    Returns:
        Bytes of all weights.
    """
    data_path = path.with_name(path.name + ".data")
    matrix_bytes = side * side * _FLOAT_BYTES
    with data_path.open("wb") as file:
        for matrix in range(matrices):
            for row in range(0, side, max(1, side // 64)):
                file.seek(matrix * matrix_bytes + row * (side + 1) * _FLOAT_BYTES)
                file.write(np.float32(0.5).tobytes())
        file.truncate(matrices * matrix_bytes)
    names = ["x", *(f"h{matrix}" for matrix in range(1, matrices)), "y"]
    nodes = [
        helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], name=f"product_{i}")
        for i in range(matrices)
    ]
    shape: list[str | int] = ["batch", side]
    graph = helper.make_graph(
        nodes,
        "big",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [_refer_to(data_path.name, i, side, matrix_bytes) for i in range(matrices)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    save_model(model, path)
    return matrices * matrix_bytes


def _refer_to(location: str, position: int, side: int, length: int) -> TensorProto:
    tensor = TensorProto(
        name=f"w{position}",
        data_type=TensorProto.FLOAT,
        dims=[side, side],
        data_location=TensorProto.EXTERNAL,
    )
    entries = {"location": location, "offset": position * length, "length": length}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor
