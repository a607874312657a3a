"""Pins: what a user wants for single nodes, whatever rules and recipe say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from trtdeploy.core.errors import NotPossibleError, UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.core.number_formats import QUANTIZED_TYPES, QuantizedType
from trtdeploy.graph.export_facts import read_pins
from trtdeploy.graph.index import ModelIndex

if TYPE_CHECKING:
    from trtdeploy.config.device import DeviceSpec

FP32, FP16 = "fp32", "fp16"
PIN_PRECISIONS = (FP32, FP16, *QUANTIZED_TYPES)
"""What may stand before the colon of a pin."""


@dataclass(frozen=True)
class Pin:
    """One wish of the user.

    Attributes:
        pattern: A node name, with ``*``, ``?`` and ``[...]`` as wildcards, or ``op:Softmax``.
        precision: One of ``PIN_PRECISIONS``.
    """

    text: str
    pattern: str
    precision: str

    @property
    def kind(self) -> QuantizedType | None:
        """The 8-bit type that is asked for; None for FP32 and FP16."""
        return QUANTIZED_TYPES.get(self.precision)

    def is_exact_for(self, name: str) -> bool:
        """True when the pin names this very node."""
        return self.pattern == name

    def matches(self, name: str, op_type: str) -> bool:
        """True for a node with this name or operator; an exact name is no pattern."""
        if self.pattern == name:
            return True
        if self.pattern.startswith("op:"):
            return fnmatchcase(op_type, self.pattern.removeprefix("op:"))
        return fnmatchcase(name, self.pattern)


def parse_pin(text: str, names: Collection[str] = ()) -> Pin:
    """Read ``PATTERN`` (FP32) or ``PRECISION:PATTERN``.

    Text that is one of ``names``, the model's nodes, is that node, colons included.
    """
    precision, colon, pattern = text.partition(":")
    if text not in names and colon and precision in PIN_PRECISIONS:
        return Pin(text, pattern, precision)
    return Pin(text, text, FP32)


def find_pinned(pins: Sequence[str], index: ModelIndex) -> dict[str, Pin]:
    """Return the pin of each pinned node, by node name.

    What the model's author pinned to FP32 (``trtdeploy.keep_fp32`` in the file's metadata) comes
    first; such a pattern may match nothing, because tools that rewrite a file do not know it.

    Where several pins match, one with the node's exact name wins over patterns, and a later one
    over an earlier one.

    Raises:
        UsageError: A pin matches no node: a typo would silently lose its effect.
    """
    authors = read_pins(index.model)
    if not pins and not authors:
        return {}
    nodes = {node.name: node.op_type for _, node in index.nodes()}
    found: dict[str, Pin] = {}
    wishes = [Pin(text, text, FP32) for text in authors]
    wishes += (parse_pin(text, nodes.keys()) for text in pins)
    for position, pin in enumerate(wishes):
        exact = [pin.pattern] if pin.pattern in nodes else []
        matched = exact or [name for name, op in nodes.items() if pin.matches(name, op)]
        if not matched and position >= len(authors):
            raise UsageError(
                f"the pin {pin.text!r} matches no node of the model", hint=_suggest(pin, nodes)
            )
        for name in matched:
            if pin.is_exact_for(name) or name not in found or not found[name].is_exact_for(name):
                found[name] = pin
    return found


def refuse_pins(pins: Sequence[str], device: DeviceSpec) -> None:
    """Refuse pins to an 8-bit type that the device does not compute in.

    Raises:
        NotPossibleError: Names pin, type and device.
    """
    for pin in map(parse_pin, pins):
        need = None if pin.kind is None else pin.kind.name.partition("-")[0]
        if need is not None and need not in device.precisions:
            raise NotPossibleError(
                f"the pin {pin.text!r} asks for {need.upper()}, which {device.title} does not have",
                hint=f"It has {', '.join(device.precisions)}.",
            )


def _suggest(pin: Pin, nodes: Mapping[str, str]) -> str:
    by_op = pin.pattern.startswith("op:")
    return suggest_name(pin.pattern, (f"op:{op}" if by_op else name for name, op in nodes.items()))
