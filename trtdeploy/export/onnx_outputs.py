"""Shapes of a file's outputs, declared as they are computed."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ValueInfoProto, helper

from trtdeploy.core.tensors import TensorSpec
from trtdeploy.export.onnx_sizes import choose_shapes
from trtdeploy.graph.model import OnnxModel
from trtdeploy.preflight.inference import InferenceStructure, Sizes

_STEPS = (1, 2)
"""The sizes of a symbol are tried times these; symbols differ among themselves by ``_APART``."""
_APART = 32
"""Sizes that are multiples of 32 pass through most models."""


def declare_outputs(model: OnnxModel) -> None:
    """Replace the declared shapes of outputs by inferred ones, in place.

    A size that follows a symbol of the inputs gets its name; one that follows none, its own
    (``NAME_AXIS``). An output whose rank cannot be inferred keeps its declaration.
    """
    structure = InferenceStructure(model)
    symbols = _list_symbols(model)
    points: list[Mapping[str, int]] = [
        {symbol: (i + 1) * _APART * step for i, symbol in enumerate(symbols)} for step in _STEPS
    ]
    inputs = model.input_specs()
    inferred = [structure.infer(Sizes(choose_shapes(inputs, point))) for point in points]
    symbolic = structure.infer()
    declared = {spec.name: spec for spec in model.output_specs()}
    for value in model.graph.output:
        dims = symbolic.shape_of(value.name)
        if dims is None or not value.type.HasField("tensor_type"):
            continue
        known = [shapes.known_shape_of(value.name) for shapes in inferred]
        shape = [
            dim if isinstance(dim, int) else _name_size(dim, axis, known, points)
            for axis, dim in enumerate(dims)
        ]
        _declare(model, value, declared[value.name], shape)


def _list_symbols(model: OnnxModel) -> list[str]:
    dims = [dim for spec in model.input_specs() for dim in spec.shape or ()]
    return list(dict.fromkeys(dim for dim in dims if isinstance(dim, str)))


def _name_size(
    dim: str | None,
    axis: int,
    known: list[tuple[int, ...] | None],
    points: list[Mapping[str, int]],
) -> int | str | None:
    """Return a number, the symbol that a size follows, or None when it follows none."""
    if dim is not None and any(dim in point for point in points):
        return dim
    if any(shape is None or axis >= len(shape) for shape in known):
        return None
    sizes = [shape[axis] for shape in known if shape is not None]
    if len(set(sizes)) == 1:
        return sizes[0]
    for symbol in points[0]:
        if all(point[symbol] == size for point, size in zip(points, sizes, strict=True)):
            return symbol
    return None


def _declare(
    model: OnnxModel, value: ValueInfoProto, before: TensorSpec, shape: list[int | str | None]
) -> None:
    named = [
        f"{value.name}_{axis}" if size is None or str(size).startswith("?") else size
        for axis, size in enumerate(shape)
    ]
    old = list(before.shape) if before.shape is not None else None
    value.type.CopyFrom(helper.make_tensor_type_proto(value.type.tensor_type.elem_type, named))
    if old is None or len(old) != len(named) or _contradict(old, named):
        model.changes.append(
            f"output {value.name!r} is declared {named}, as it is computed; it was {old}"
        )


def _contradict(old: list[int | str], new: list[int | str]) -> bool:
    """True when a number became another size; names are only names."""
    return any(left != right for left, right in zip(old, new, strict=True) if isinstance(left, int))
