"""Everything that cleaning does to a model, before it is written and proven."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from trtdeploy.config.batch_layout import BatchLayout
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.onnx.batch import FreeBatchPass
from trtdeploy.export.onnx.sizes import (
    Axes,
    find_exported_batch,
    list_tried_sizes,
    read_asked_axes,
)
from trtdeploy.export.opset_choice import OLD_TENSORRT_OPSET, choose_opset
from trtdeploy.export.output_shapes import declare_outputs
from trtdeploy.export.request import ExportRequest
from trtdeploy.graph.export_facts import read_size_rules
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.drop_unread_nodes import DropUnreadNodesPass
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.passes.fold_constants import FoldConstantsPass
from trtdeploy.graph.passes.lower_opset import FROM_OPSET, TO_OPSET, LowerOpsetPass
from trtdeploy.graph.passes.set_input_axes import SetInputAxesPass
from trtdeploy.graph.passes.strip_training import StripTrainingPass
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass


@dataclass(frozen=True)
class CleanedModel:
    """A model that is clean, and what is known about it.

    Attributes:
        reference: What it must agree with, when that is no longer the source itself.
        request: What it was cleaned for.
        opset_reason: Why it has its opset.
        axes: What the request changed about the inputs' axes.
        example: Sizes by symbol that the source is known to work with.
        added: Dynamic axes that have one size in the source.
        batch: Where its batch is; None when it is fixed.
        freed: Nodes were changed to let the batch through, or it is among the added axes; samples
            must then not influence each other.
        batch_kept: The batch was dynamic before, nobody asked for it, and nodes that mix its
            samples were left alone.
        rules: What its dynamic axes accept.
    """

    model: OnnxModel
    reference: OnnxModel | None
    request: ExportRequest
    opset_reason: str
    axes: Axes
    example: Mapping[str, int]
    added: frozenset[str]
    batch: BatchLayout | None
    freed: bool
    batch_kept: bool
    rules: tuple[SizeRule, ...]

    @property
    def adds_batch(self) -> bool:
        """Whether the source takes one batch only."""
        return self.batch is not None and not self.added.isdisjoint(self.batch.symbols)

    @property
    def tried_batches(self) -> tuple[int, ...]:
        """Batches to prove beside the exported one: twice as many, and those that were stated."""
        if self.batch is None:
            return ()
        stated = [n for s in self.batch.symbols for n in self.request.proof.sizes.get(s, ())]
        accepted = [rule for rule in self.rules if rule.symbol in self.batch.symbols]
        return tuple(
            size
            for size in dict.fromkeys([2 * self.batch.exported, *stated])
            if size != self.batch.exported and all(rule.accepts(size) for rule in accepted)
        )


def clean_model(
    loaded: OnnxModel, request: ExportRequest, *, strip_training: bool, keep_batch: bool = False
) -> CleanedModel:
    """Return a cleaned copy.

    Args:
        loaded: A model without other blockers than those that cleaning removes.
        request: Its axes, opset and sizes are followed.
        strip_training: Put nodes in training mode into their inference form.
        keep_batch: Change no node for the sake of the batch.

    Raises:
        UsageError: There is no such input or axis.
        InputError: The opset cannot be the one that was asked for.
        ModelFileError: A node has no inference form, or none in the opset.
    """
    model = normalize_model(loaded)
    reference = model.copy() if _has_repeated_names(loaded) else None
    if strip_training:
        StripTrainingPass()(model)
        reference = model.copy()
    before = model.input_specs()
    axes, example = read_asked_axes(request, before)
    SetInputAxesPass(axes)(model)
    reason = _change_opset(model, request)
    FoldConstantsPass()(model)
    inputs = model.input_specs()
    renamed = _pair_dims(before, inputs)
    rules = _merge_rules(read_size_rules(model), renamed, request.multiples)
    batch, changes = find_exported_batch(inputs, example, rules), len(model.changes)
    if batch is not None and not keep_batch:
        sizes = next(list_tried_sizes(inputs, example, {}, rules))
        FreeBatchPass(batch, sizes)(model)
    added = frozenset(new for old, new in renamed if isinstance(old, int))
    freed = batch is not None and (
        len(model.changes) > changes or not added.isdisjoint(batch.symbols)
    )
    DropUnreadNodesPass()(model)
    DropUnusedConstantsPass()(model)
    model.changes += declare_outputs(model, rules)
    return CleanedModel(
        model, reference, request, reason, axes, example, added, batch, freed, keep_batch, rules
    )


def _pair_dims(
    before: Sequence[TensorSpec], after: Sequence[TensorSpec]
) -> list[tuple[int | str, str]]:
    """Return what each dynamic axis was, and what it is called."""
    return [
        (old, new)
        for spec, renamed in zip(before, after, strict=True)
        for old, new in zip(spec.shape or (), renamed.shape or (), strict=True)
        if isinstance(new, str)
    ]


def _has_repeated_names(model: OnnxModel) -> bool:
    """True for a file that ONNX Runtime refuses, and that is the same network with other names."""
    names = [node.name for node in walk_nodes(model.graph) if node.name]
    return len(set(names)) < len(names)


def _change_opset(model: OnnxModel, request: ExportRequest) -> str:
    """Bring the model to the opset it needs; return why that one.

    A file for no profile in particular is raised only as far as every TensorRT since 8.6 reads it:
    what is newer was somebody's choice.
    """
    wanted, reason = choose_opset(request.opset, request.profile)
    if request.opset is None and not request.profile:
        wanted, reason = OLD_TENSORRT_OPSET, "every TensorRT since 8.6 reads it"
    if model.opset < wanted:
        UpgradeOpsetPass(wanted)(model)
        return reason
    must_lower = request.opset is not None or (request.profile and wanted == OLD_TENSORRT_OPSET)
    if model.opset == wanted or not must_lower:
        return "as in the source"
    if (model.opset, wanted) != (FROM_OPSET, TO_OPSET):
        raise InputError(
            f"opset {model.opset} of {model.path} cannot be lowered to {wanted} ({reason})",
            hint=f"Export the model again with opset {wanted}.",
        )
    LowerOpsetPass()(model)
    return reason


def _merge_rules(
    recorded: Sequence[SizeRule],
    renamed: Sequence[tuple[int | str, str]],
    multiples: Mapping[str, int],
) -> tuple[SizeRule, ...]:
    """Return what the file says, under the names that its symbols have now, and what was stated."""
    symbols = {new for _, new in renamed}
    for symbol in multiples:
        if symbol not in symbols:
            raise UsageError(
                f"there is no dynamic axis {symbol!r} to be a multiple of {multiples[symbol]}",
                hint=f"Dynamic axes: {', '.join(sorted(symbols)) or 'none'}.",
            )
    known = {rule.symbol: rule for rule in recorded}
    rules: dict[str, SizeRule] = {}
    for old, new in renamed:
        if old in known:
            rules[new] = _join_rules(rules.get(new, SizeRule(new)), known[str(old)])
    for symbol, step in multiples.items():
        stated = SizeRule(symbol, multiple_of=step, min=step)
        rules[symbol] = replace(stated, max=rules.get(symbol, stated).max)
    for rule in rules.values():
        if not rule.accepts(rule.nearest(rule.min)):
            raise UsageError(f"no size of {rule.symbol!r} is accepted: {rule}")
    return tuple(rules.values())


def _join_rules(left: SizeRule, right: SizeRule) -> SizeRule:
    """Return what accepts the sizes that both accept, for the symbol of the first."""
    limits = [rule.max for rule in (left, right) if rule.max is not None]
    return SizeRule(
        left.symbol,
        math.lcm(left.multiple_of, right.multiple_of),
        max(left.min, right.min),
        min(limits, default=None),
    )
