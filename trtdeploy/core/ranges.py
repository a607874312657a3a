"""Optimization profiles: the smallest, usual and largest shapes an engine accepts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

POINTS = ("min", "opt", "max")


@dataclass(frozen=True)
class PointRange:
    """Numbers of one input at each of the three points."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    def at(self, point: str) -> tuple[int, ...]:
        """Return the numbers at ``min``, ``opt`` or ``max``."""
        return {"min": self.min, "opt": self.opt, "max": self.max}[point]


class ShapeRange(PointRange):
    """Sizes of one input; all three tuples have the input's rank.

    A shape tensor also has ``ShapeRange`` dims, plus a ``ValueRange`` for its contents.
    """


class ValueRange(PointRange):
    """Contents of one shape tensor, flattened in row-major order."""


@dataclass(frozen=True)
class OptimizationProfile:
    """One TensorRT optimization profile over all inputs of a model.

    Attributes:
        name: For people; engines number profiles, they do not name them.
        shapes: Sizes for every input of the model, static ones included.
        values: Contents for every shape tensor.
    """

    name: str
    shapes: Mapping[str, ShapeRange]
    values: Mapping[str, ValueRange] = field(default_factory=dict)

    @property
    def opt_shapes(self) -> dict[str, tuple[int, ...]]:
        """The usual shape of every input."""
        return {name: sizes.opt for name, sizes in self.shapes.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OptimizationProfile:
        """Read plain data of the same shape.

        Raises:
            KeyError: A part is missing.
            TypeError: A part is no mapping of lists.
            ValueError: A size is no number.
        """
        shapes = {name: _read_points(points) for name, points in data["shapes"].items()}
        values = {name: _read_points(points) for name, points in data["values"].items()}
        return cls(
            name=str(data["name"]),
            shapes={name: ShapeRange(*points) for name, points in shapes.items()},
            values={name: ValueRange(*points) for name, points in values.items()},
        )


def _read_points(table: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(size) for size in table[point]) for point in POINTS)
