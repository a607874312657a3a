"""Writing ONNX graphs of convolutional networks with random weights."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET, IR_VERSION = 17, 8


class Feature(NamedTuple):
    """A value with channels: [N, channels, H, W]."""

    name: str
    channels: int


class GraphBuilder:
    """Collects nodes and weights; the same seed gives the same model."""

    def __init__(self, seed: int) -> None:
        self.nodes: list[Any] = []
        self.weights: list[TensorProto] = []
        self._generator = np.random.default_rng(seed)

    def constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike) -> str:
        """Add an initializer and return its name."""
        name = f"constant_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def random(self, shape: tuple[int, ...], deviation: float) -> str:
        """Add a normally distributed FP32 weight and return its name."""
        values = self._generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)
        return self.constant(values, np.float32)

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> list[str]:
        """Add a node and return the names of its outputs."""
        name = f"{operator}_{len(self.nodes)}"
        names = [f"{name}_output_{position}" for position in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names

    def call(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return that output's name."""
        return self.add(operator, *inputs, **attributes)[0]

    def convolution(
        self, source: Feature, channels: int, kernel: int, stride: int = 1, gain: float = 2.0
    ) -> Feature:
        """Add a padded convolution with bias; ``gain`` 2 keeps the variance over a ReLU (He)."""
        deviation = math.sqrt(gain / (source.channels * kernel * kernel))
        weight = self.random((channels, source.channels, kernel, kernel), deviation)
        bias = self.random((channels,), 0.01)
        name = self.call(
            "Conv",
            source.name,
            weight,
            bias,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
        )
        return Feature(name, channels)

    def max_pool(self, source: Feature, kernel: int, stride: int) -> Feature:
        """Add a padded max-pooling."""
        name = self.call(
            "MaxPool",
            source.name,
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[kernel // 2] * 4,
        )
        return Feature(name, source.channels)

    def concat(self, *sources: Feature) -> Feature:
        """Join values along their channels."""
        name = self.call("Concat", *(source.name for source in sources), axis=1)
        return Feature(name, sum(source.channels for source in sources))

    def build(
        self, name: str, source: tuple[str, list[int | str]], result: tuple[str, list[int | str]]
    ) -> ModelProto:
        """Return the model; the last node's output becomes the graph output ``result``."""
        self.nodes[-1].output[0] = result[0]
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info(source[0], TensorProto.FLOAT, source[1])],
            [helper.make_tensor_value_info(result[0], TensorProto.FLOAT, result[1])],
            self.weights,
        )
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)
