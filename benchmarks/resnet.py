"""ResNet-50 as exporters write it: batch normalisation folded into 53 convolutions."""

from __future__ import annotations

from onnx import ModelProto

from benchmarks.graph_builder import Feature, GraphBuilder

_BLOCKS = (3, 4, 6, 3)
_EXPANSION = 4


def build_resnet50(width: int = 64, classes: int = 1000) -> ModelProto:
    """Return ResNet-50 (He et al. 2015, table 1) with random weights, 102 MB at full width.

    Args:
        width: Channels of the first stage; fewer make a small model of the same topology.
        classes: Length of the output.
    """
    graph = GraphBuilder(seed=50)
    value = _relu(graph, graph.convolution(Feature("input", 3), width, kernel=7, stride=2))
    value = graph.max_pool(value, kernel=3, stride=2)
    for stage, blocks in enumerate(_BLOCKS):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            value = _bottleneck(graph, value, width << stage, stride)
    pooled = graph.call("Flatten", graph.call("GlobalAveragePool", value.name), axis=1)
    weight = graph.random((classes, value.channels), value.channels**-0.5)
    graph.call("Gemm", pooled, weight, graph.random((classes,), 0.01), transB=1)
    return graph.build(
        "resnet50", ("input", ["batch", 3, "height", "width"]), ("output", ["batch", classes])
    )


def _bottleneck(graph: GraphBuilder, source: Feature, width: int, stride: int) -> Feature:
    """1x1, 3x3 and 1x1 convolutions beside a shortcut; the stride is in the 3x3 one (v1.5)."""
    channels = width * _EXPANSION
    inner = _relu(graph, graph.convolution(source, width, kernel=1))
    inner = _relu(graph, graph.convolution(inner, width, kernel=3, stride=stride))
    # A small gain keeps the sum over sixteen blocks in the range that trained networks have.
    inner = graph.convolution(inner, channels, kernel=1, gain=0.1)
    shortcut = source
    if stride > 1 or source.channels != channels:
        shortcut = graph.convolution(source, channels, kernel=1, stride=stride, gain=1.0)
    return _relu(graph, Feature(graph.call("Add", inner.name, shortcut.name), channels))


def _relu(graph: GraphBuilder, source: Feature) -> Feature:
    return Feature(graph.call("Relu", source.name), source.channels)
