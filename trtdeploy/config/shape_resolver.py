"""Decides the size of every axis from statements of different strength."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from trtdeploy.config.axis_roles import (
    NAMED_ROLES,
    AxisPlace,
    DynamicAxis,
    complete_sizes,
    find_default,
    find_dynamic_axes,
)
from trtdeploy.config.shape_problem import (
    ShapeProblem,
    check_symbol_sizes,
    read_explicit_shape,
)
from trtdeploy.config.shape_request import ShapeRequest
from trtdeploy.config.shape_table import AxisRange, ShapeTable
from trtdeploy.config.shape_values import check_values, explain_missing_values
from trtdeploy.config.size_rules import find_rule_fault, fit_sizes
from trtdeploy.core.names import suggest_name
from trtdeploy.core.ranges import POINTS, OptimizationProfile, ShapeRange, ValueRange
from trtdeploy.core.tensors import TensorSpec, format_shape


class Statement(NamedTuple):
    """Who says what about an axis, and what of it was assumed."""

    text: str
    sizes: AxisRange
    note: str = ""


class ShapeResolver:
    """Resolves one request; ``problems`` and ``notes`` fill up on the way."""

    def __init__(self, inputs: Sequence[TensorSpec], request: ShapeRequest) -> None:
        """Prepare to resolve one request against all inputs of a model."""
        self.name = request.name
        self.problems: list[ShapeProblem] = []
        self.notes: list[str] = []
        self._request = request
        self._specs = {spec.name: spec for spec in inputs}
        self._axes = find_dynamic_axes(inputs)
        self._symbols = {axis.symbol for axis in self._axes}
        self._rules = {rule.symbol: rule for spec in inputs for rule in spec.size_rules}
        self._layers = [_Layer() for _ in request.tables]
        self._rejected: set[str] = set()  # inputs whose shape is wrong: nothing more to say
        # What a stronger table says stands in for all that weaker ones say, mistakes included.
        self._overridden_inputs: set[str] = set()
        self._overridden_symbols: set[str] = set()
        self._unranked: dict[str, ShapeRange] = {}

    def resolve(self) -> OptimizationProfile:
        """Return the profile; only of use when ``problems`` stays empty."""
        for table, layer in zip(self._request.tables, self._layers, strict=True):
            self._check_names(table)
            self._read_inputs(table, layer)
            self._read_symbols(table, layer)
            self._overridden_inputs.update(table.inputs)
            self._overridden_symbols.update(table.symbols)
        self._layers.append(self._count_values())
        sizes = self._decide_axes()
        shapes = {spec.name: self._build_shape(spec, sizes) for spec in self._specs.values()}
        values = self._decide_values(shapes)
        return OptimizationProfile(self.name, shapes, values)

    def _check_names(self, table: ShapeTable) -> None:
        known = [f"{name!r} ({format_shape(spec.shape)})" for name, spec in self._specs.items()]
        expected = f"one of the model's inputs: {', '.join(known) or 'it has none'}"
        for name in dict.fromkeys((*table.inputs, *table.values)):
            if name not in self._specs:
                suggestion = suggest_name(name, self._specs)
                near = f". {suggestion}" if suggestion.startswith("Did") else ""
                self.problems.append(
                    ShapeProblem(f"input {name!r}", "a name the model lacks", expected + near, name)
                )

    def _read_inputs(self, table: ShapeTable, layer: _Layer) -> None:
        for name, sizes in table.inputs.items():
            spec = self._specs.get(name)
            layer.lists_inputs |= spec is None or spec.is_dynamic
            if spec is None or name in self._overridden_inputs:
                continue
            result = read_explicit_shape(spec, sizes, allow_zero=self._request.allow_zero)
            self.problems += result.problems
            if result.problems:
                self._rejected.add(name)
            elif spec.shape is None:
                columns = zip(*(result.axes[axis] for axis in range(len(result.axes))), strict=True)
                self._unranked.setdefault(name, ShapeRange(*(list(columns) or [(), (), ()])))
            for axis, sizes_of_axis in result.axes.items():
                layer.inputs[AxisPlace(name, axis)] = sizes_of_axis

    def _read_symbols(self, table: ShapeTable, layer: _Layer) -> None:
        for symbol, sizes in table.symbols.items():
            if symbol in self._overridden_symbols:
                continue
            axes = self._find_axes(symbol)
            if not axes:
                self.problems.append(self._explain_unknown_symbol(symbol))
                continue
            problem = check_symbol_sizes(symbol, sizes, allow_zero=self._request.allow_zero)
            if problem:
                self.problems.append(problem)
                self._rejected.update(p.input_name for axis in axes for p in axis.places)
                continue
            for axis in axes:
                default = find_default(axis.role, self._request.defaults)
                complete = complete_sizes(sizes, default, axis.role)
                complete = fit_sizes(complete, self._rules.get(axis.symbol), sizes)
                note = _note_symbol(symbol, axis, complete, partial=None in dict(sizes).values())
                statement = Statement(f"symbols.{symbol} says {complete}", complete, note)
                layer.symbols.setdefault(axis, []).append(statement)

    def _count_values(self) -> _Layer:
        """Let the number of values size a shape tensor whose length the model leaves open."""
        layer = _Layer()
        for table in reversed(self._request.tables):
            for name, values in table.values.items():
                spec = self._specs.get(name)
                if spec and spec.is_shape_tensor and spec.dynamic_axes == (0,) and spec.rank == 1:
                    count = len(values.opt or ())
                    layer.inputs[AxisPlace(name, 0)] = AxisRange(count, count, count)
        return layer

    def _find_axes(self, symbol: str) -> list[DynamicAxis]:
        if symbol in self._symbols or symbol not in NAMED_ROLES:
            return [axis for axis in self._axes if axis.symbol == symbol]
        return [axis for axis in self._axes if axis.role == symbol]

    def _explain_unknown_symbol(self, symbol: str) -> ShapeProblem:
        known = ", ".join(axis.label for axis in self._axes)
        expected = f"one of {known}" if known else "none: every size in the model is fixed"
        suggestion = suggest_name(symbol, {*self._symbols, *(axis.role for axis in self._axes)})
        if suggestion.startswith("Did"):
            expected = f"{expected}. {suggestion}"
        return ShapeProblem(f"symbol {symbol!r}", "a symbol that no input carries", expected)

    def _decide_axes(self) -> dict[AxisPlace, AxisRange]:
        sizes: dict[AxisPlace, AxisRange] = {}
        unsaid: dict[str, list[DynamicAxis]] = {}
        listed = any(layer.lists_inputs for layer in self._layers)
        for axis in self._axes:
            said = next((s for layer in self._layers if (s := layer.find_statements(axis))), None)
            if said is not None:
                decided = self._require_agreement(axis, said)
            else:
                decided = fit_sizes(
                    find_default(axis.role, self._request.defaults), self._rules.get(axis.symbol)
                )
                names = [place.input_name for place in axis.places]
                if not self._rejected.isdisjoint(names):
                    pass  # its sizes were given, and refused
                elif listed:
                    unsaid.setdefault(names[0], []).append(axis)
                else:
                    role = "" if axis.role == "other" else f", taken as {axis.role},"
                    self.notes.append(f"{axis.label}{role} not given: {decided} assumed")
            sizes.update(dict.fromkeys(axis.places, decided))
        for name, axes in unsaid.items():
            self.problems.append(self._explain_missing_input(name, axes))
        return sizes

    def _require_agreement(self, axis: DynamicAxis, said: list[Statement]) -> AxisRange:
        self.notes += [statement.note for statement in said if statement.note]
        ranges = {statement.sizes for statement in said}
        if len(ranges) > 1:
            self.problems.append(
                ShapeProblem(
                    f"symbol {axis.symbol!r}",
                    ", ".join(dict.fromkeys(statement.text for statement in said)),
                    "the same sizes wherever the symbol occurs",
                )
            )
        fault = find_rule_fault(said[0].sizes, self._rules.get(axis.symbol))
        if fault is not None:
            self.problems.append(ShapeProblem(f"symbol {axis.label}", *fault))
        return said[0].sizes

    def _explain_missing_input(self, name: str, axes: Sequence[DynamicAxis]) -> ShapeProblem:
        named = ", ".join(f"axis {axis.places[0].axis} ({axis.symbol!r})" for axis in axes)
        shape = format_shape(self._specs[name].shape)
        return ShapeProblem(
            f"input {name!r}",
            "no shape, while other inputs have one",
            f"min, opt and max for its {shape}, at least for {named}",
            name,
        )

    def _build_shape(self, spec: TensorSpec, sizes: dict[AxisPlace, AxisRange]) -> ShapeRange:
        if spec.shape is None:
            if spec.name not in self._unranked and spec.name not in self._rejected:
                self.problems.append(
                    ShapeProblem(
                        f"input {spec.name!r}",
                        "no shape, and the model does not even state how many axes it has",
                        f"--shape '{spec.name}:MIN:OPT:MAX'",
                        spec.name,
                    )
                )
            return self._unranked.get(spec.name, ShapeRange((), (), ()))
        axes = [
            AxisRange(dim, dim, dim) if isinstance(dim, int) else sizes[AxisPlace(spec.name, index)]
            for index, dim in enumerate(spec.shape)
        ]
        return ShapeRange(*(tuple(axis[point] for axis in axes) for point in range(3)))

    def _decide_values(self, shapes: dict[str, ShapeRange]) -> dict[str, ValueRange]:
        values: dict[str, ValueRange] = {}
        for name, spec in self._specs.items():
            given = next((t.values[name] for t in self._request.tables if name in t.values), None)
            if given is None:
                if spec.is_shape_tensor:
                    self.problems.append(explain_missing_values(spec, shapes[name]))
                continue
            known = name not in self._rejected
            counts = {p: math.prod(shapes[name].at(p)) for p in POINTS} if known else None
            problem = check_values(spec, given, counts)
            if problem:
                self.problems.append(problem)
                continue
            values[name] = ValueRange(given.min or (), given.opt or (), given.max or ())
            if not spec.is_shape_tensor:
                self.notes.append(f"values of {name!r} kept, though no shape seems to depend on it")
        return values


class _Layer:
    """Everything one table says, by axis."""

    def __init__(self) -> None:
        self.inputs: dict[AxisPlace, AxisRange] = {}
        self.symbols: dict[DynamicAxis, list[Statement]] = {}
        self.lists_inputs = False

    def find_statements(self, axis: DynamicAxis) -> list[Statement]:
        """Return what this table says about an axis; empty when it is silent."""
        explicit = [
            Statement(f"{place} says {self.inputs[place]}", self.inputs[place])
            for place in axis.places
            if place in self.inputs
        ]
        return [*self.symbols.get(axis, []), *explicit]


def _note_symbol(symbol: str, axis: DynamicAxis, complete: AxisRange, *, partial: bool) -> str:
    if symbol != axis.symbol:
        return f"{symbol} sizes {complete} applied to {axis.label}"
    return f"{axis.label}: not all of min, opt, max given: {complete} assumed" if partial else ""
