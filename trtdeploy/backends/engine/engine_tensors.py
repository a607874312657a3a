"""What a loaded engine says of its inputs, outputs and optimization profiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trtdeploy.backends.numpy_types import NumpyType, to_numpy_type
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import NotPossibleError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.core.tensors import Shape, TensorSpec

_TYPES = {
    "FLOAT": DType.FLOAT32, "HALF": DType.FLOAT16, "BF16": DType.BFLOAT16,
    "FP8": DType.FLOAT8E4M3FN, "INT8": DType.INT8, "UINT8": DType.UINT8, "INT32": DType.INT32,
    "INT64": DType.INT64, "BOOL": DType.BOOL,
}  # fmt: skip
"""Members of ``trt.DataType`` that fill whole bytes; INT4, FP4 and E8M0 are never inputs."""


@dataclass(frozen=True)
class EngineTensor:
    """An input or output of an engine.

    Attributes:
        spec: As sessions show it.
        on_host: TensorRT reads or writes it in host memory (shape tensors).
        shape: As the engine declares it; -1 for a size that varies.
    """

    spec: TensorSpec
    is_input: bool
    on_host: bool
    dtype: NumpyType
    shape: tuple[int, ...]

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.spec.name


def read_engine_tensors(
    trt: Any, engine: Any, declared: Mapping[str, Shape | None]
) -> tuple[EngineTensor, ...]:
    """Return inputs and outputs in the engine's order.

    Args:
        trt: The TensorRT module.
        engine: A deserialised engine.
        declared: Shapes with symbolic dimensions, as the model names them; for readable specs.

    Raises:
        NotPossibleError: A tensor is not row-major, or its type has no numpy form.
    """
    names = [engine.get_tensor_name(position) for position in range(engine.num_io_tensors)]
    return tuple(_read_tensor(trt, engine, name, declared.get(name)) for name in names)


def _read_tensor(trt: Any, engine: Any, name: str, declared: Shape | None) -> EngineTensor:
    label = engine.get_tensor_dtype(name).name
    dtype = _TYPES.get(label)
    numpy_type = to_numpy_type(dtype) if dtype else None
    layout = engine.get_tensor_format(name)
    if dtype is None or numpy_type is None:
        raise NotPossibleError(f"tensor {name!r} of the engine is {label}, which numpy lacks")
    if layout != trt.TensorFormat.LINEAR:
        raise NotPossibleError(
            f"tensor {name!r} of the engine is laid out as {layout.name}; sessions exchange LINEAR "
            "(row-major) arrays"
        )
    shape = tuple(int(size) for size in engine.get_tensor_shape(name))
    on_host = engine.get_tensor_location(name) == trt.TensorLocation.HOST
    return EngineTensor(
        spec=TensorSpec(name, dtype, _name_dims(shape, declared), is_shape_tensor=on_host),
        is_input=engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
        on_host=on_host,
        dtype=numpy_type,
        shape=shape,
    )


def _name_dims(shape: tuple[int, ...], declared: Shape | None) -> Shape:
    """Sizes are the engine's; names of those that vary are the model's, where it has them."""
    names = declared if declared is not None and len(declared) == len(shape) else ()
    symbols = [dim if isinstance(dim, str) else None for dim in names] or [None] * len(shape)
    return tuple(
        size if size >= 0 else symbol or f"?{axis}"
        for axis, (size, symbol) in enumerate(zip(shape, symbols, strict=True))
    )


def read_optimization_profiles(
    engine: Any, inputs: Sequence[EngineTensor], described: Sequence[OptimizationProfile]
) -> tuple[OptimizationProfile, ...]:
    """Return the engine's optimization profiles, over all inputs.

    Args:
        engine: A deserialised engine.
        inputs: Its inputs.
        described: As the manifest has them; names, and values where the engine tells none
            (TensorRT 8.6 has no tensor-name call for them).
    """
    profiles = []
    for index in range(engine.num_optimization_profiles):
        known = described[index] if index < len(described) else None
        values = {t.name: _read_values(engine, t, index, known) for t in inputs if t.on_host}
        profiles.append(
            OptimizationProfile(
                name=known.name if known else str(index),
                shapes={tensor.name: _read_shapes(engine, tensor, index) for tensor in inputs},
                values={name: value for name, value in values.items() if value is not None},
            )
        )
    return tuple(profiles)


def _read_shapes(engine: Any, tensor: EngineTensor, index: int) -> ShapeRange:
    if -1 not in tensor.shape:
        return ShapeRange(tensor.shape, tensor.shape, tensor.shape)
    points = engine.get_tensor_profile_shape(tensor.name, index)
    return ShapeRange(*(tuple(int(size) for size in point) for point in points))


def _read_values(
    engine: Any, tensor: EngineTensor, index: int, known: OptimizationProfile | None
) -> ValueRange | None:
    ask = getattr(engine, "get_tensor_profile_values", None)
    # The binding's parameters are named the wrong way round: the index comes first.
    points = ask(index, tensor.name) if ask is not None else []
    if points:
        return ValueRange(*(tuple(int(value) for value in point) for point in points))
    return known.values.get(tensor.name) if known else None
