"""KeepPinnedRule: what the user asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.pins import FP32, find_pinned
from trtdeploy.precision.rules.rule import Kept


class KeepPinnedRule:
    """Keep nodes that a pin of the user asks to be FP32.

    Pins to other precisions concern quantization; here they only have to match something.
    """

    def __init__(self, pins: Sequence[str]) -> None:
        self.pins = tuple(pins)

    def find(self, context: RuleContext) -> Iterator[Kept]:
        """Yield nodes pinned to FP32.

        Raises:
            UsageError: A pin matches no node: a typo would silently lose its effect.
        """
        for name, pin in find_pinned(self.pins, context.index).items():
            if pin.precision == FP32:
                yield name, f"pinned to FP32 by {pin.text!r}"
