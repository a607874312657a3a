"""Which sizes a file's inputs get: as declared, as asked, and as tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trtdeploy.config.axis_roles import DynamicAxis, find_default, find_dynamic_axes
from trtdeploy.config.batch_layout import BatchLayout, find_batch, find_free_batch
from trtdeploy.config.shape_table import AxisDefaults
from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import SizeRule, TensorSpec, format_shape
from trtdeploy.export.request import ExportRequest, InputSpec

Shapes = dict[str, tuple[int, ...]]

_TRIED: Mapping[str, tuple[int, ...]] = {
    "batch": (1, 8, 16),
    "height": (64, 96, 224, 320, 640),
    "width": (64, 128, 224, 320, 640),
    "sequence": (16, 12, 128, 512),
    "other": (16, 8, 64),
}
"""Sizes of dynamic axes to prove a file at, small ones first: most models take one of them."""


Axes = Mapping[str, Mapping[int, int | str]]
"""New symbol or size by axis by input; only what differs from the file."""


def read_asked_axes(
    request: ExportRequest, inputs: Sequence[TensorSpec]
) -> tuple[Axes, Mapping[str, int]]:
    """Return what ``--dynamic`` and ``--input`` ask of a file's inputs.

    A named axis becomes dynamic. Axes that ``--dynamic`` does not name get the size that
    ``--input`` gives them, or stay as the file declares them.

    Returns:
        The axes, and the size by symbol that the request or the file itself gave.

    Raises:
        UsageError: There is no such input or axis, a shape does not fit, or every axis was to be
            fixed and one has no size.
    """
    specs = {spec.name: spec for spec in inputs}
    given = {item.name: _check_example(item, specs) for item in request.inputs}
    wanted = request.dynamic or {}
    for name, symbols in wanted.items():
        _check_axes(name, symbols, specs)
    axes: dict[str, dict[int, int | str]] = {}
    example: dict[str, int] = {}
    for spec in inputs:
        for axis, dim in enumerate(spec.shape or ()):
            symbol = wanted.get(spec.name, {}).get(axis)
            size = given[spec.name].shape[axis] if spec.name in given else None
            if symbol is not None:
                known = size if size is not None else dim if isinstance(dim, int) else None
                _remember(example, symbol, known)
                axes.setdefault(spec.name, {})[axis] = symbol
            elif isinstance(dim, str):
                _remember(example, dim, size)
                if request.dynamic is not None and size is not None:
                    axes.setdefault(spec.name, {})[axis] = size
                elif request.dynamic is not None and not wanted.get(spec.name, wanted):
                    raise UsageError(
                        f"input {spec.name!r} axis {axis} ({dim}) is to be fixed, and has no size",
                        hint=f"Give it: --input {spec.name}:{spec.dtype.label}:SHAPE",
                    )
    return axes, example


def _remember(example: dict[str, int], symbol: str, size: int | None) -> None:
    if size is None:
        return
    if example.setdefault(symbol, size) != size:
        raise UsageError(
            f"the dynamic axis {symbol!r} would be {example[symbol]} in one input and {size} in "
            "another",
            hint="Axes of one name always have one size; give them different names.",
        )


def _check_example(item: InputSpec, specs: Mapping[str, TensorSpec]) -> InputSpec:
    spec = _find_input(item.name, specs)
    dims = spec.shape
    fits = dims is None or (
        len(dims) == len(item.shape)
        and all(isinstance(d, str) or d == s for d, s in zip(dims, item.shape, strict=True))
    )
    if not fits or spec.dtype is not item.dtype:
        raise UsageError(
            f"--input {item.name}: given {item.dtype.label} {format_shape(item.shape)}, and the "
            f"file declares {spec.dtype.label} {format_shape(dims)}"
        )
    return item


def _check_axes(name: str, symbols: Mapping[int, str], specs: Mapping[str, TensorSpec]) -> None:
    spec = _find_input(name, specs)
    for axis in symbols:
        if spec.shape is None or axis >= len(spec.shape):
            raise UsageError(
                f"--dynamic {name}: there is no axis {axis} in {format_shape(spec.shape)}"
            )


def _find_input(name: str, specs: Mapping[str, TensorSpec]) -> TensorSpec:
    if name not in specs:
        raise UsageError(f"the file has no input {name!r}. {suggest_name(name, specs)}")
    return specs[name]


def find_exported_batch(
    inputs: Sequence[TensorSpec], example: Mapping[str, int], rules: Sequence[SizeRule] = ()
) -> BatchLayout | None:
    """Return where the dynamic batch is, and its size in the example; None when there is none."""
    batch = find_free_batch(inputs)
    if batch is None:
        return None
    least = {rule.symbol: rule.nearest(1) for rule in rules}
    size = max(example.get(symbol, least.get(symbol, 1)) for symbol in batch.symbols)
    return replace(batch, exported=size)


def choose_shapes(
    inputs: Sequence[TensorSpec], sizes: Mapping[str, int], default: int = 1
) -> Shapes:
    """Return the shape of every input at the given sizes by symbol."""
    return {
        spec.name: tuple(
            sizes.get(dim, default) if isinstance(dim, str) else dim for dim in spec.shape or ()
        )
        for spec in inputs
    }


def list_tried_sizes(
    inputs: Sequence[TensorSpec],
    example: Mapping[str, int],
    given: Mapping[str, Sequence[int]],
    rules: Sequence[SizeRule] = (),
) -> Iterator[dict[str, int]]:
    """Yield sizes by symbol to run a file at, the likeliest first; the batch is left out.

    Args:
        inputs: Their symbols get sizes.
        example: Sizes that are known to work.
        given: Sizes the user wants tried.
        rules: What the file says about its sizes.
    """
    batch = find_batch(inputs).symbols
    axes = [axis for axis in find_dynamic_axes(inputs) if axis.symbol not in batch]
    accepted = {rule.symbol: rule for rule in rules}
    choices = {a.symbol: _list_sizes(a, example, given, accepted.get(a.symbol)) for a in axes}
    for turn in range(max(map(len, choices.values()), default=1)):
        yield {symbol: sizes[min(turn, len(sizes) - 1)] for symbol, sizes in choices.items()}


def _list_sizes(
    axis: DynamicAxis,
    example: Mapping[str, int],
    given: Mapping[str, Sequence[int]],
    rule: SizeRule | None,
) -> list[int]:
    if axis.symbol in given:
        return list(given[axis.symbol])
    assumed = (*_TRIED[axis.role], find_default(axis.role, AxisDefaults()).opt)
    sizes = [example[axis.symbol]] if axis.symbol in example else []
    sizes += [rule.nearest(size) if rule else size for size in assumed]
    return list(dict.fromkeys(sizes))
