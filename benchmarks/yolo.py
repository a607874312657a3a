"""A detector with the topology of YOLOv8n: 64 convolutions, SiLU, C2f, SPPF and a DFL head."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import ModelProto

from benchmarks.graph_builder import Feature, GraphBuilder

CLASSES, BINS = 80, 16
_STRIDES = (8, 16, 32)


def build_yolov8n(base: int = 16, image: int = 640) -> ModelProto:
    """Return a detector with random weights, 12.7 MB at full width.

    Args:
        base: Channels of the first convolution; fewer make a small model of the same topology.
        image: Height and width of the input, a multiple of 32.
    """
    graph = GraphBuilder(seed=8)
    levels = _neck(graph, *_backbone(graph, Feature("images", 3), base), base)
    _head(graph, levels, base, image)
    anchors = sum((image // stride) ** 2 for stride in _STRIDES)
    return graph.build(
        "yolov8n",
        ("images", ["batch", 3, image, image]),
        ("output0", ["batch", 4 + CLASSES, anchors]),
    )


def _backbone(graph: GraphBuilder, image: Feature, base: int) -> tuple[Feature, Feature, Feature]:
    """Return the features at strides 8, 16 and 32."""
    value = _conv(graph, image, base, 3, 2)
    value = _c2f(graph, _conv(graph, value, base * 2, 3, 2), base * 2, blocks=1)
    p3 = _c2f(graph, _conv(graph, value, base * 4, 3, 2), base * 4, blocks=2)
    p4 = _c2f(graph, _conv(graph, p3, base * 8, 3, 2), base * 8, blocks=2)
    p5 = _c2f(graph, _conv(graph, p4, base * 16, 3, 2), base * 16, blocks=1)
    return p3, p4, _sppf(graph, p5)


def _neck(
    graph: GraphBuilder, p3: Feature, p4: Feature, p5: Feature, base: int
) -> tuple[Feature, Feature, Feature]:
    up4 = _c2f(graph, graph.concat(_double(graph, p5), p4), base * 8, shortcut=False)
    out3 = _c2f(graph, graph.concat(_double(graph, up4), p3), base * 4, shortcut=False)
    down = _conv(graph, out3, base * 4, 3, 2)
    out4 = _c2f(graph, graph.concat(down, up4), base * 8, shortcut=False)
    down = _conv(graph, out4, base * 8, 3, 2)
    return out3, out4, _c2f(graph, graph.concat(down, p5), base * 16, shortcut=False)


def _conv(
    graph: GraphBuilder, source: Feature, channels: int, kernel: int = 1, stride: int = 1
) -> Feature:
    value = graph.convolution(source, channels, kernel, stride)
    gate = graph.call("Sigmoid", value.name)
    return Feature(graph.call("Mul", value.name, gate), channels)


def _c2f(
    graph: GraphBuilder, source: Feature, channels: int, blocks: int = 1, *, shortcut: bool = True
) -> Feature:
    half = channels // 2
    sizes = graph.constant([half, half], np.int64)
    names = graph.add("Split", _conv(graph, source, channels).name, sizes, outputs=2, axis=1)
    parts = [Feature(name, half) for name in names]
    for _ in range(blocks):
        inner = _conv(graph, _conv(graph, parts[-1], half, 3), half, 3)
        if shortcut:
            inner = Feature(graph.call("Add", parts[-1].name, inner.name), half)
        parts.append(inner)
    return _conv(graph, graph.concat(*parts), channels)


def _sppf(graph: GraphBuilder, source: Feature) -> Feature:
    parts = [_conv(graph, source, source.channels // 2)]
    for _ in range(3):
        parts.append(graph.max_pool(parts[-1], kernel=5, stride=1))
    return _conv(graph, graph.concat(*parts), source.channels)


def _double(graph: GraphBuilder, source: Feature) -> Feature:
    scales = graph.constant([1, 1, 2, 2], np.float32)
    rounding = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    name = graph.call("Resize", source.name, "", scales, mode="nearest", **rounding)
    return Feature(name, source.channels)


def _head(graph: GraphBuilder, levels: tuple[Feature, ...], base: int, image: int) -> None:
    """Distances by distribution (DFL, Li et al. 2020) to boxes; class scores by sigmoid."""
    box, score = max(base * 4, BINS * 4), max(base * 4, CLASSES)
    flat = []
    for level in levels:
        inner = _conv(graph, _conv(graph, level, box, 3), box, 3)
        distances = graph.convolution(inner, BINS * 4, kernel=1, gain=1.0)
        inner = _conv(graph, _conv(graph, level, score, 3), score, 3)
        joined = graph.concat(distances, graph.convolution(inner, CLASSES, kernel=1, gain=1.0))
        flat.append(graph.call("Reshape", joined.name, _shape(graph, 0, joined.channels, -1)))
    sizes = graph.constant([BINS * 4, CLASSES], np.int64)
    bins, scores = graph.add("Split", graph.call("Concat", *flat, axis=2), sizes, outputs=2, axis=1)
    boxes = _boxes(graph, _distances(graph, bins), image)
    graph.call("Concat", boxes, graph.call("Sigmoid", scores), axis=1)


def _distances(graph: GraphBuilder, bins: str) -> str:
    """Return the mean of each distribution over 16 bins: [N, 64, A] to [N, 4, A]."""
    split = graph.call("Reshape", bins, _shape(graph, 0, 4, BINS, -1))
    softmax = graph.call("Softmax", graph.call("Transpose", split, perm=[0, 2, 1, 3]), axis=1)
    weight = graph.constant(np.arange(BINS).reshape(1, BINS, 1, 1), np.float32)
    mean = graph.call("Conv", softmax, weight, kernel_shape=[1, 1])
    return graph.call("Reshape", mean, _shape(graph, 0, 4, -1))


def _boxes(graph: GraphBuilder, distances: str, image: int) -> str:
    """Return centre, width and height in pixels from left, top, right and bottom distances."""
    centres, strides = _anchors(image)
    points = graph.constant(centres, np.float32)
    near, far = graph.add("Split", distances, graph.constant([2, 2], np.int64), outputs=2, axis=1)
    low, high = graph.call("Sub", points, near), graph.call("Add", points, far)
    middle = graph.call("Div", graph.call("Add", low, high), graph.constant(2, np.float32))
    joined = graph.call("Concat", middle, graph.call("Sub", high, low), axis=1)
    return graph.call("Mul", joined, graph.constant(strides, np.float32))


def _anchors(image: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the cell centres [1, 2, A] in cells and the strides [1, A] in pixels."""
    centres, strides = [], []
    for stride in _STRIDES:
        cells = np.arange(image // stride) + 0.5
        x, y = np.meshgrid(cells, cells)
        centres.append(np.stack([x.ravel(), y.ravel()]))
        strides.append(np.full(x.size, stride))
    return np.concatenate(centres, axis=1)[None], np.concatenate(strides)[None]


def _shape(graph: GraphBuilder, *dims: int) -> str:
    return graph.constant(dims, np.int64)
