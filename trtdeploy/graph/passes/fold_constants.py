"""FoldConstantsPass: what can be computed now is not computed on the GPU."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, numpy_helper, shape_inference

from trtdeploy.graph.attributes import integer_of, value_of
from trtdeploy.graph.constant_results import compute_results
from trtdeploy.graph.constant_values import read_constant
from trtdeploy.graph.index import Scope, build_index
from trtdeploy.graph.model import ONNX_DOMAINS, ONNX_ERRORS, OnnxModel
from trtdeploy.graph.onnx_defects import is_dangerous
from trtdeploy.graph.shape_inference import Dims, copy_structure, read_shapes, require_known

_Array = npt.NDArray[np.generic]

_MOST_ROUNDS = 16


class FoldConstantsPass:
    """Replace nodes whose operands are constants, and sizes that are known, by their results.

    Before: ``Concat(Unsqueeze(Gather(Shape(x), 0)), [-1])`` with ``x`` of shape 4x3x8.
    After: an initializer ``[4, -1]`` of the same name.
    Bounded: a result is kept only if it is small or no larger than the constants that it makes
    superfluous. Only operators whose result is the same on every runtime are folded; quantization
    is never folded, because Q and DQ are instructions. Results of the graph keep their node.
    Ensures: no node left that this pass would fold. What nothing reads any more is left for
    ``DropUnreadNodesPass`` and ``DropUnusedConstantsPass``.
    """

    def __call__(self, model: OnnxModel) -> None:
        """Rewrite ``model`` in place."""
        folded = 0
        for _ in range(_MOST_ROUNDS):
            found = _fold_once(model)
            folded += found
            if not found:
                break
        if folded:
            nodes = "1 node" if folded == 1 else f"{folded} nodes"
            model.changes.append(f"{nodes} of known result folded into constants")


def _fold_once(model: OnnxModel) -> int:
    index = build_index(model)
    sizes = _infer_sizes(model)
    results: list[tuple[Scope, NodeProto, list[_Array]]] = []
    for scope, node in index.nodes():
        if node.domain not in ONNX_DOMAINS or scope.outputs & set(node.output):
            continue
        values = _fold_size(model, scope, node, sizes)
        if values is None and not is_dangerous(node):
            values = compute_results(model, scope, node)
        if values is not None:
            results.append((scope, node, values))
            for name, value in zip(node.output, values, strict=True):
                if name:  # the next node of a chain finds it in this very round
                    scope.initializers[name] = numpy_helper.from_array(value, name)
                    scope.producers.pop(name, None)
    _replace(results)
    return len(results)


def _replace(results: list[tuple[Scope, NodeProto, list[_Array]]]) -> None:
    gone = {id(node) for _, node, _ in results}
    for scope, node, values in results:
        for name, value in zip(node.output, values, strict=True):
            if name:
                scope.graph.initializer.append(numpy_helper.from_array(value, name))
    touched = {id(scope): scope for scope, _, _ in results}
    # innermost first: rebuilding a graph copies its nodes, bodies included
    for scope in sorted(touched.values(), key=_depth, reverse=True):
        kept = [node for node in scope.nodes if id(node) not in gone]
        del scope.graph.node[:]
        scope.graph.node.extend(kept)


def _depth(scope: Scope) -> int:
    return 0 if scope.parent is None else 1 + _depth(scope.parent)


def _infer_sizes(model: OnnxModel) -> dict[str, Dims]:
    """Return the sizes of the main graph's values, as far as the inputs' declarations give them."""
    try:
        return read_shapes(shape_inference.infer_shapes(copy_structure(model)).graph)
    except ONNX_ERRORS:
        return {}


def _fold_size(
    model: OnnxModel, scope: Scope, node: NodeProto, sizes: dict[str, Dims]
) -> list[_Array] | None:
    """Return the value of Shape, or of a Gather of it, when the sizes it asks for are known."""
    if scope.parent is not None:
        return None
    if node.op_type == "Shape":
        return _as_sizes(_sizes_of_shape(node, sizes))
    source = scope.producers.get(node.input[0]) if node.op_type == "Gather" else None
    if source is None or source.op_type != "Shape" or source.domain not in ONNX_DOMAINS:
        return None
    known = _sizes_of_shape(source, sizes)
    wanted = read_constant(model, scope, node.input[1])
    if known is None or wanted is None or wanted.dtype.kind != "i":
        return None
    positions = wanted.ravel().tolist()
    if not all(-len(known) <= position < len(known) for position in positions):
        return None
    found = _as_sizes(tuple(known[position] for position in positions))
    return None if found is None else [found[0].reshape(wanted.shape)]


def _sizes_of_shape(node: NodeProto, sizes: dict[str, Dims]) -> Dims | None:
    known = sizes.get(node.input[0])
    if known is None:
        return None
    end = value_of(node, "end")
    return known[integer_of(node, "start", 0) : end if isinstance(end, int) else None]


def _as_sizes(sizes: Dims | None) -> list[_Array] | None:
    known = None if sizes is None else require_known(sizes)
    return None if known is None else [np.array(known, np.int64)]
