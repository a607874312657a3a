"""An ONNX model in memory: its structure, and where its large weights lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt
from google.protobuf.message import EncodeError
from onnx import (
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TensorShapeProto,
    ValueInfoProto,
    checker,
    numpy_helper,
    shape_inference,
    version_converter,
)

from trtdeploy.core.dtypes import DType
from trtdeploy.core.tensors import Dim, Shape, TensorSpec
from trtdeploy.graph.weights import StoredWeight, WeightRange, measure_range

ONNX_DOMAINS = ("", "ai.onnx")
ONNX_ERRORS = (
    RuntimeError,
    ValueError,
    TypeError,
    EncodeError,
    checker.ValidationError,
    shape_inference.InferenceError,
    version_converter.ConvertError,
)
"""What ``onnx`` and protobuf raise for a model that they cannot work on."""
ANONYMOUS_DIMS = frozenset({"", "?", "-1", "None"})
"""Names that exporters write for "unknown": equal text does not mean equal size."""


@dataclass
class OnnxModel:
    """A model whose large main-graph initializers are kept out of ``proto``.

    Attributes:
        proto: The structure. An initializer named in ``weights`` has no data here.
        path: The file it came from.
        weights: Data of the large initializers of the main graph, by name.
        data_files: Every file beside ``path`` that weights were found in.
        changes: What trtdeploy changed since loading, one sentence each, for the report.
    """

    proto: ModelProto
    path: Path
    weights: dict[str, StoredWeight] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    data_files: set[Path] = field(default_factory=set)

    @property
    def graph(self) -> GraphProto:
        """The main graph."""
        return self.proto.graph

    @property
    def opset(self) -> int:
        """Version of the default operator set; 1 when the file names none."""
        return next((o.version for o in self.proto.opset_import if o.domain in ONNX_DOMAINS), 1)

    @property
    def weight_bytes(self) -> int:
        """Bytes of all large weights as they will be stored."""
        return sum(weight.stored_bytes for weight in self.weights.values())

    def input_specs(self) -> tuple[TensorSpec, ...]:
        """Return what a caller must feed; initializers listed as inputs (IR 3) are left out."""
        constants = {tensor.name for tensor in self.graph.initializer}
        constants |= {sparse.values.name for sparse in self.graph.sparse_initializer}
        return tuple(_read_specs(v for v in self.graph.input if v.name not in constants))

    def output_specs(self) -> tuple[TensorSpec, ...]:
        """Return the outputs in order; a nameless dimension is never that of an input."""
        inputs = sum(len(spec.dynamic_axes) for spec in self.input_specs())
        return tuple(_read_specs(self.graph.output, first_anonymous=inputs))

    def copy(self) -> OnnxModel:
        """Return an independent copy; weights on the disk are shared, never written."""
        proto = ModelProto()
        proto.CopyFrom(self.proto)
        return OnnxModel(
            proto, self.path, dict(self.weights), list(self.changes), set(self.data_files)
        )

    def find_stored(self, tensor: TensorProto) -> StoredWeight | None:
        """Return the weight an initializer stands for; None when its data is in it."""
        return None if _has_data(tensor) else self.weights.get(tensor.name)

    def iterate_values(self, tensor: TensorProto) -> Iterator[npt.NDArray[np.generic]]:
        """Yield the values of a floating-point initializer in flat chunks."""
        weight = self.find_stored(tensor)
        if weight is not None:
            yield from weight.iterate_arrays()
        else:
            yield numpy_helper.to_array(tensor).ravel()

    def measure_initializer(self, tensor: TensorProto) -> WeightRange:
        """Return the range of a floating-point initializer without loading it whole."""
        return measure_range(self.iterate_values(tensor))


def _has_data(tensor: TensorProto) -> bool:
    return bool(tensor.raw_data or tensor.float_data or tensor.int32_data or tensor.double_data)


def _read_specs(values: Iterable[ValueInfoProto], first_anonymous: int = 0) -> list[TensorSpec]:
    """Read names, types and shapes; nameless dimensions become ``?N``, N from the given number."""
    specs = []
    anonymous = count(first_anonymous)
    for value in values:
        tensor = value.type.tensor_type
        shape: Shape | None = None
        if tensor.HasField("shape"):
            shape = tuple(_read_dim(dim, anonymous) for dim in tensor.shape.dim)
        specs.append(TensorSpec(value.name, DType.from_onnx(tensor.elem_type), shape))
    return specs


def _read_dim(dim: TensorShapeProto.Dimension, anonymous: Iterator[int]) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    return f"?{next(anonymous)}" if dim.dim_param in ANONYMOUS_DIMS else dim.dim_param


def subgraphs_of(node: NodeProto) -> list[GraphProto]:
    """Return the bodies of an If, Loop or Scan node, in attribute order."""
    found: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found.append(attribute.g)
        else:
            found.extend(attribute.graphs)
    return found


def walk_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield ``graph`` and every graph nested in it, outer before inner."""
    yield graph
    for node in graph.node:
        for body in subgraphs_of(node):
            yield from walk_graphs(body)


def walk_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield every node of ``graph`` and of the graphs nested in it."""
    for scope in walk_graphs(graph):
        yield from scope.node
