"""Shapes of a file's outputs, declared as they are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from onnx import helper

from trtdeploy.config.axis_roles import find_dynamic_axes
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.onnx.sizes import choose_shapes
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.shape_inference import Dims
from trtdeploy.preflight.inference import InferenceStructure, Sizes

Point = Mapping[str, int]
Shape = list[int | str | None]

_PROBES = 3
"""Two points cannot tell ``W`` from ``H + 1`` or ``2 * H``; a third one can."""
_USUAL_STEP = 32
"""Sizes that are multiples of 32 pass through most models."""


def declare_outputs(
    model: OnnxModel,
    rules: Iterable[SizeRule] = (),
    observed: Mapping[str, Sequence[tuple[Point, tuple[int, ...]]]] | None = None,
) -> list[str]:
    """Replace the declared shapes of outputs by inferred ones, in place.

    A size that follows a symbol of the inputs gets its name; one that follows none, its own
    (``NAME_AXIS``). An output of unknown rank keeps its declaration.

    Args:
        model: Its inputs are declared already.
        rules: What its symbols accept.
        observed: Shapes by output that runs gave, with the sizes of the symbols: they give the
            rank where inference does not, and take back what they contradict.

    Returns:
        One sentence for each declaration that was wrong.
    """
    specs = model.input_specs()
    points = choose_probes(specs, rules)
    structure = InferenceStructure(model)
    inferred = [structure.infer(Sizes(choose_shapes(specs, point))) for point in points]
    symbolic = structure.infer()
    declared = {spec.name: spec for spec in model.output_specs()}
    changes = []
    for value in model.graph.output:
        runs = (observed or {}).get(value.name, ())
        known = [shapes.shape_of(value.name) for shapes in inferred]
        shape = _name_sizes(symbolic.shape_of(value.name), known, points)
        shape = _correct(shape, runs)
        if shape is None or not value.type.HasField("tensor_type"):
            continue
        named = [
            f"{value.name}_{axis}" if size is None or str(size).startswith("?") else size
            for axis, size in enumerate(shape)
        ]
        code = value.type.tensor_type.elem_type
        value.type.CopyFrom(helper.make_tensor_type_proto(code, named))
        changes += _describe_change(declared[value.name], named)
    return changes


def choose_probes(inputs: Sequence[TensorSpec], rules: Iterable[SizeRule] = ()) -> list[Point]:
    """Return sizes by symbol to infer shapes at, such that no symbol looks like another.

    Each size is a prime number of steps, none of them used twice, and where one symbol's sizes
    rise, those of the next one fall: nothing that grows with one symbol passes for another.

    Args:
        inputs: Every symbol in their shapes gets a size.
        rules: What its symbols accept; one that accepts few sizes gets fewer than three.
    """
    known = {rule.symbol: rule for rule in rules}
    axes = {axis.symbol: axis for axis in find_dynamic_axes(inputs)}
    primes = _list_primes(_PROBES * len(axes))
    points: list[dict[str, int]] = [{} for _ in range(_PROBES)]
    for number, axis in enumerate(axes.values()):
        rule = known.get(axis.symbol, SizeRule(axis.symbol))
        usual = rule.multiple_of if axis.role == "batch" or rule.multiple_of > 1 else _USUAL_STEP
        steps = primes[number * _PROBES :][:_PROBES]
        turn = number % _PROBES
        steps = steps[turn:] + steps[:turn]
        sizes = [rule.min - 1 + step * usual for step in steps]
        if rule.max is not None and max(sizes) > rule.max:
            sizes = [rule.min - 1 + step * rule.multiple_of for step in steps]
        for point, size in zip(points, sizes, strict=True):
            point[axis.symbol] = rule.nearest(size)
    return list(points)


def _list_primes(count: int) -> list[int]:
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


def _name_sizes(
    symbolic: Dims | None, known: Sequence[Dims | None], points: Sequence[Point]
) -> Shape | None:
    """Return numbers, symbols, and None for what follows neither; None for an unknown rank."""
    if symbolic is None:
        return None
    shape: Shape = []
    for axis, dim in enumerate(symbolic):
        sizes = [dims[axis] if dims and axis < len(dims) else None for dims in known]
        if all(isinstance(size, int) for size in sizes):
            shape.append(_name_size(sizes, points))
        else:
            shape.append(dim if isinstance(dim, int) or dim in points[0] else None)
    return shape


def _name_size(sizes: Sequence[int | str | None], points: Sequence[Point]) -> int | str | None:
    if len(set(sizes)) == 1:
        return sizes[0]
    follows = (
        symbol
        for symbol in points[0]
        if all(point[symbol] == size for point, size in zip(points, sizes, strict=True))
    )
    return next(follows, None)


def _correct(shape: Shape | None, runs: Sequence[tuple[Point, tuple[int, ...]]]) -> Shape | None:
    if not runs:
        return shape
    rank = len(runs[0][1])
    if shape is None or len(shape) != rank:
        return [None] * rank
    return [
        size if all(point.get(str(size), size) == found[axis] for point, found in runs) else None
        for axis, size in enumerate(shape)
    ]


def _describe_change(before: TensorSpec, named: Sequence[int | str]) -> list[str]:
    old = None if before.shape is None else list(before.shape)
    if old is not None and len(old) == len(named):
        numbers = [pair for pair in zip(old, named, strict=True) if isinstance(pair[0], int)]
        if all(left == right for left, right in numbers):
            return []  # names are only names
    return [f"output {before.name!r} is declared {list(named)}, as it is computed; it was {old}"]
