"""A source made ready: it runs, and what varies is decided, before anything is exported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.fp32_regions import Fp32Region
from trtdeploy.export.opset_choice import choose_opset
from trtdeploy.export.pytorch.autocast import find_fp32_regions, find_program_regions
from trtdeploy.export.pytorch.axes import (
    DecidedAxes,
    decide_axes,
    fix_axes,
    resize_example,
)
from trtdeploy.export.pytorch.eval_mode import enforce_eval_mode
from trtdeploy.export.pytorch.example import add_example_inputs
from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.quiet import quiet_frameworks
from trtdeploy.export.pytorch.size_search import example_sizes, find_batch_symbols
from trtdeploy.export.pytorch.source import TorchSource
from trtdeploy.export.pytorch.widening import widen_module
from trtdeploy.export.pytorch.wrappers import bake_parametrizations
from trtdeploy.export.request import ExportRequest


@dataclass
class PreparedSource:
    """A source that runs, and all that was decided about it before the export.

    Attributes:
        source: The model with its example, in the state that is exported.
        flat: The same as a function of tensors.
        request: What the user asked for.
        opset: Opset to write.
        opset_reason: Why that one.
        axes: What varies; what the exporters find out narrows it.
        regions: Parts that the author computes in FP32 under autocast.
        notes: What the user should know.
    """

    source: TorchSource
    flat: FlatModule
    request: ExportRequest
    opset: int
    opset_reason: str
    axes: DecidedAxes
    regions: list[Fp32Region]
    notes: list[str]

    @property
    def sizes(self) -> dict[str, int]:
        """The example's size of every symbol."""
        return example_sizes(self.source.named_tensors(), self.axes.dynamic)

    @property
    def batches(self) -> frozenset[str]:
        """Symbols of a batch, which the proof tries at 1."""
        return find_batch_symbols(self.source.named_tensors(), self.axes.dynamic)

    @property
    def has_default_axes(self) -> bool:
        """Whether nobody said which axes vary."""
        return self.request.dynamic is None and self.source.program is None

    def fix_sizes(self, reasons: Mapping[str, str]) -> None:
        """Let symbols vary no longer; they get the size of the user's own example."""
        axes = self.axes
        given = {symbol: axes.given[symbol] for symbol in reasons}
        resize_example(self.source, axes.dynamic, given, self.request.proof.seed)
        axes.dynamic = fix_axes(axes.dynamic, reasons)
        for symbol, why in reasons.items():
            del axes.rules[symbol]
            self.notes.append(f"{symbol} stays fixed at {given[symbol]}: {why}")

    @property
    def stated_rules(self) -> tuple[SizeRule, ...]:
        """Rules that say more than "any size"."""
        return tuple(rule for rule in self.axes.rules.values() if rule != SizeRule(rule.symbol))


def prepare_source(source: TorchSource, request: ExportRequest) -> PreparedSource:
    """Bring a source into the state that is exported, and decide what varies.

    Raises:
        InputError: The model does not run, or a size that was asked to vary cannot.
        UsageError: The request does not fit the model.
    """
    opset, reason = choose_opset(request.opset, request.profile)
    add_example_inputs(source, request.inputs, request.proof.seed)
    notes = enforce_eval_mode(source.module) if source.program is None else []
    _freeze_observers(source.module)
    bake_parametrizations(source.module)
    flat = FlatModule(source, widened=widen_module(source))
    with quiet_frameworks():
        regions = find_fp32_regions(flat, lambda: flat.call(source.named_tensors()))
        if source.program is not None:
            regions = find_program_regions(source.program)
        axes = decide_axes(source, flat, request)
    constants = [f"{name}={value!r}" for name, value in source.constants().items()]
    if constants:
        notes.append(f"fixed in the file, being no tensors: {', '.join(constants)}")
    return PreparedSource(
        source, flat, request, opset, reason, axes, regions,
        [*source.notes, *notes, *axes.notes, *flat.notes],
    )  # fmt: skip


def _freeze_observers(module: torch.nn.Module) -> None:
    """Keep fake-quantization from learning new scales while it is exported and proven."""
    for child in module.modules():
        disable = getattr(child, "disable_observer", None)
        if callable(disable):
            disable()
