"""Which axes of the inputs vary, under which symbols, and what sizes those accept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import torch

from trtdeploy.config.axis_roles import find_role_by_position
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.pytorch.example import describe_tensor, make_feeds
from trtdeploy.export.pytorch.failure import FixedSizesError
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.program import Axes, read_program_axes
from trtdeploy.export.pytorch.size_search import SizeSearch, example_sizes, shapes_at
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.structure import rebuild
from trtdeploy.export.request import ExportRequest

_SMALLEST = 2
"""``torch.export`` takes a size of 1 for a constant."""


@dataclass
class DecidedAxes:
    """What varies: a symbol by axis by input, and the sizes it accepts.

    Attributes:
        given: Size of each symbol in the user's own example.
    """

    dynamic: Axes
    given: dict[str, int]
    rules: dict[str, SizeRule] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def decide_axes(source: TorchSource, flat: FlatModule, request: ExportRequest) -> DecidedAxes:
    """Return the axes that vary; the source's example may be enlarged so that they can.

    Raises:
        UsageError: A name, axis or symbol of the request does not exist or does not fit.
        InputError: A size that was asked to vary cannot.
    """
    tensors = source.named_tensors()
    asked = request.dynamic is not None
    if source.program is not None:
        dynamic = read_program_axes(source.program, list(tensors), request.dynamic)
    elif asked:
        dynamic = _check_asked(request.dynamic or {}, tensors)
    else:
        dynamic = _choose_axes(source.dynamic or {}, tensors)
    decided = DecidedAxes(dynamic, example_sizes(tensors, dynamic))
    _check_multiples(request.multiples, decided.given)
    seed = request.proof.seed
    may_stay = not asked and source.program is None
    larger = {} if source.program else _list_larger(decided.given, request.multiples)
    search = SizeSearch(flat, source, dynamic, seed)
    for symbol in larger.keys() - request.multiples.keys():
        if not search.runs_at({symbol: larger[symbol]}):
            _fix_single_size(decided, symbol, decided.given[symbol], may_stay=may_stay)
    resize_example(source, decided.dynamic, larger, seed)
    search = SizeSearch(flat, source, decided.dynamic, seed)
    for symbol, size in list(search.sizes.items()):
        rule = _find_rule(search, symbol, request.multiples.get(symbol))
        if rule is not None:
            decided.rules[symbol] = rule
        else:
            _fix_single_size(decided, symbol, size, may_stay=may_stay)
    return decided


def _fix_single_size(decided: DecidedAxes, symbol: str, size: int, *, may_stay: bool) -> None:
    if not may_stay:
        raise _explain_single_size(symbol, size)
    decided.dynamic = fix_axes(decided.dynamic, [symbol])
    decided.notes.append(f"{symbol} stays fixed at {size}: the model runs at no other size")


def _choose_axes(
    known: Mapping[str, Mapping[int, str]], tensors: Mapping[str, torch.Tensor]
) -> Axes:
    """Return the symbols the source knows, and by common layouts those of all other inputs.

    Only sizes that agree in the example get one symbol. A size of 1 beside another one is that of
    a broadcast, and stays fixed.
    """
    axes: Axes = {}
    first: dict[str, int] = {}
    for name, tensor in tensors.items():
        axes[name] = {}
        for axis, symbol in (known[name] if name in known else _guess_axes(name, tensor)).items():
            size = int(tensor.shape[axis]) if axis < tensor.dim() else None
            if size is None or (size == 1 != first.get(symbol, 1)):
                continue
            own = symbol if first.setdefault(symbol, size) == size else f"{name}_{axis}"
            axes[name][axis] = own
    return axes


def _guess_axes(name: str, tensor: torch.Tensor) -> dict[int, str]:
    """Return symbols by common layouts: the batch first, NCHW images, token ids."""
    spec = describe_tensor(name, tensor)
    roles = {axis: find_role_by_position(spec, axis) for axis in range(tensor.dim())}
    return {axis: role for axis, role in roles.items() if role}


def _check_asked(
    asked: Mapping[str, Mapping[int, str]], tensors: Mapping[str, torch.Tensor]
) -> Axes:
    for name, axes in asked.items():
        if name not in tensors:
            raise UsageError(
                f"--dynamic {name!r}: the model has no such input; it has {', '.join(tensors)}",
                hint=suggest_name(name, tensors),
            )
        rank = tensors[name].dim()
        wrong = [axis for axis in axes if axis >= rank]
        if wrong:
            raise UsageError(
                f"--dynamic {name!r}: axis {wrong[0]} does not exist, the input has {rank} axes"
            )
    sizes: dict[str, tuple[str, int]] = {}
    for name, axes in asked.items():
        for axis, symbol in axes.items():
            size = int(tensors[name].shape[axis])
            first = sizes.setdefault(symbol, (f"{name} axis {axis}", size))
            if first[1] != size:
                raise UsageError(
                    f"--dynamic: {symbol!r} is {first[1]} at {first[0]} and {size} at {name} axis "
                    f"{axis}; the same symbol means the same size",
                    hint="Use two symbols, or example inputs of the same size.",
                )
    return {name: dict(axes) for name, axes in asked.items()}


def _check_multiples(multiples: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    for symbol in multiples:
        if symbol not in sizes:
            raise UsageError(
                f"--multiple {symbol!r}: no such dynamic size", hint=suggest_name(symbol, sizes)
            )


def _list_larger(sizes: Mapping[str, int], multiples: Mapping[str, int]) -> dict[str, int]:
    """Return other sizes for those of 1, and the next that fits for those that break a step."""
    fitting = {
        symbol: SizeRule(symbol, multiples.get(symbol, 1)).nearest(max(size, _SMALLEST))
        for symbol, size in sizes.items()
    }
    return {symbol: size for symbol, size in fitting.items() if size != sizes[symbol]}


def resize_example(source: TorchSource, dynamic: Axes, sizes: Mapping[str, int], seed: int) -> None:
    """Give symbols of the example other sizes, and all inputs new values, if that is needed."""
    tensors = source.named_tensors()
    before = example_sizes(tensors, dynamic)
    after = {symbol: sizes.get(symbol, size) for symbol, size in before.items()}
    if after != before:
        feeds = make_feeds(source, shapes_at(tensors, dynamic, after), seed)
        source.args, source.kwargs = rebuild(
            (source.args, dict(source.kwargs)), iter(feeds.values())
        )


def _find_rule(search: SizeSearch, symbol: str, stated: int | None) -> SizeRule | None:
    if stated is None and symbol in search.batches:
        runs = search.runs_at({symbol: search.sizes[symbol] + 1})
        return SizeRule(symbol) if runs else None
    rule = search.find_rule(symbol, stated)
    if stated is not None and not search.runs_at({symbol: search.sizes[symbol] + stated}):
        return None
    return rule


def fix_axes(dynamic: Mapping[str, Mapping[int, str]], symbols: Collection[str]) -> Axes:
    """Return the axes without some symbols."""
    return {
        name: {axis: symbol for axis, symbol in axes.items() if symbol not in symbols}
        for name, axes in dynamic.items()
    }


def format_dynamic(dynamic: Mapping[str, Mapping[int, str]]) -> str:
    """Return the axes as they are typed: ``--dynamic x:0=batch --dynamic mask:``."""
    return " ".join(
        f"--dynamic {name}:" + ",".join(f"{axis}={symbol}" for axis, symbol in axes.items())
        for name, axes in dynamic.items()
    )


def require_several_sizes(rules: Iterable[SizeRule]) -> None:
    """Refuse rules that leave a symbol one size.

    Raises:
        FixedSizesError: A symbol could take its smallest size alone.
    """
    single = {
        rule.symbol: f"the model takes size {rule.nearest(1)} alone"
        for rule in rules
        if rule.nearest(1) == rule.nearest(1 << 62)
    }
    if single:
        raise FixedSizesError(
            single, hint=f"Leave {', '.join(single)} out of --dynamic, or widen --multiple."
        )


def _explain_single_size(symbol: str, size: int) -> InputError:
    return InputError(
        f"{symbol!r} is asked to vary, but the model, run in PyTorch, takes its example's size "
        f"{size} and none of the sizes tried beside it",
        hint=f"Leave {symbol} out of --dynamic; or state its step with --multiple {symbol}=STEP, "
        "or build the model so that it takes other sizes (e.g. --config dynamic_img_size=true).",
    )
