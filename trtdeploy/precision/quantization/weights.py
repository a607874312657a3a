"""Constants in 8 bits: measured and stored without ever being in memory whole."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import TensorProto

from trtdeploy.core.number_formats import QuantizedType
from trtdeploy.graph.channels import PIECE_ELEMENTS, ChannelLayout
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.quantized_weights import WeightQuantization, quantize_values


def measure_weight_amax(
    model: OnnxModel, tensor: TensorProto, axis: int | None
) -> npt.NDArray[np.float32]:
    """Return the largest finite magnitude of a weight, per index of ``axis``.

    Args:
        model: The model that holds ``tensor``; weights on the disk are read chunk by chunk.
        tensor: A floating-point initializer of the main graph, or one with its data in it.
        axis: The axis with an amax per index, negative to count from the back; None for one in all.

    Returns:
        FP32, shape (channels,); 0 where a channel is empty, all zero, or without finite value.

    Raises:
        ValueError: ``axis`` is not one of the tensor's.
        ModelFileError: The weights cannot be read any more.
    """
    layout = ChannelLayout.along(tensor.dims, axis)
    amax = np.zeros(layout.channels, np.float32)
    start = 0
    for values in model.iterate_values(tensor):
        for begin in range(0, values.size, PIECE_ELEMENTS):
            magnitudes = _measure_magnitudes(values[begin : begin + PIECE_ELEMENTS])
            found = layout.find_largest(magnitudes, start + begin)
            np.maximum(amax, found, out=amax)
        start += values.size
    return amax


def store_quantized(
    model: OnnxModel,
    tensor: TensorProto,
    name: str,
    scales: npt.NDArray[np.float32],
    axis: int | None,
    kind: QuantizedType,
) -> None:
    """Append the initializer ``name`` to the main graph: ``tensor`` in 8 bits.

    A weight on the disk stays there, and is quantized while the model is saved. One that the
    typing pass has narrowed is quantized from its source values.

    Args:
        model: The model, changed in place.
        tensor: A floating-point initializer of the main graph, or one with its data in it.
        name: Name of the new initializer; nothing else may have it.
        scales: FP32, one per index of ``axis``, from ``compute_scales``.
        axis: The axis of the scales, negative to count from the back; None for one scale.
        kind: The 8-bit type.

    Raises:
        ValueError: ``axis`` is not one of the tensor's, or the number of scales is another.
    """
    layout = ChannelLayout.along(tensor.dims, axis)
    if scales.size != layout.channels:
        raise ValueError(
            f"weight {tensor.name!r} has {layout.channels} channels, but {scales.size} scales"
        )
    flat = np.asarray(scales, np.float32).reshape(-1)
    quantization = WeightQuantization(flat, layout, kind.dtype, kind.max)
    quantized = TensorProto(dims=tensor.dims, data_type=kind.dtype.code, name=name)
    stored = model.find_stored(tensor)
    if stored is not None:
        model.weights[name] = stored.quantize(quantization)
    else:
        values = np.concatenate(list(model.iterate_values(tensor)))
        quantized.raw_data = quantize_values(values, quantization, 0).tobytes()
    model.graph.initializer.append(quantized)


def _measure_magnitudes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        magnitudes: npt.NDArray[np.float32] = np.abs(values.astype(np.float32))
    finite = np.isfinite(magnitudes)
    return magnitudes if finite.all() else np.where(finite, magnitudes, np.float32(0))
