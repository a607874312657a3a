"""Everything that cleaning does to a model, before it is written and proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import SizeRule, TensorSpec
from trtdeploy.export.onnx_batch import FreeBatchPass
from trtdeploy.export.onnx_outputs import declare_outputs
from trtdeploy.export.onnx_sizes import (
    AskedAxes,
    BatchPlan,
    find_batch,
    list_tried_sizes,
    read_asked_axes,
)
from trtdeploy.export.opset_choice import OLD_TENSORRT_OPSET, choose_opset
from trtdeploy.export.opset_lowering import FROM_OPSET, TO_OPSET, LowerOpsetPass
from trtdeploy.export.request import ExportRequest
from trtdeploy.graph.export_facts import read_size_rules
from trtdeploy.graph.model import OnnxModel, walk_nodes
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.drop_unread_nodes import DropUnreadNodesPass
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.passes.fold_constants import FoldConstantsPass
from trtdeploy.graph.passes.set_input_axes import SetInputAxesPass
from trtdeploy.graph.passes.strip_training import StripTrainingPass
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass


@dataclass(frozen=True)
class CleanedModel:
    """A model that is clean, and what is known about it.

    Attributes:
        model: The model.
        reference: What it must agree with, when that is no longer the source itself.
        opset_reason: Why it has its opset.
        asked: The axes that were asked for.
        added: Dynamic axes that the source does not have.
        batch: Where its batch is; None when it is fixed.
        freed: The batch was not free before.
        rules: What its dynamic axes accept.
    """

    model: OnnxModel
    reference: OnnxModel | None
    opset_reason: str
    asked: AskedAxes
    added: frozenset[str]
    batch: BatchPlan | None
    freed: bool
    rules: tuple[SizeRule, ...]


def clean_model(loaded: OnnxModel, request: ExportRequest, *, strip_training: bool) -> CleanedModel:
    """Return a cleaned copy.

    Args:
        loaded: A model without other blockers than those that cleaning removes.
        request: Axes, opset, sizes.
        strip_training: Put nodes in training mode into their inference form.

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
    before = _list_symbols(model.input_specs())
    asked = read_asked_axes(request, model.input_specs())
    SetInputAxesPass(asked.axes)(model)
    reason = _change_opset(model, request)
    FoldConstantsPass()(model)
    inputs = model.input_specs()
    rules = _merge_rules(model, request.multiples)
    batch, changes = find_batch(inputs, asked.example), len(model.changes)
    if batch is not None:
        sizes = next(list_tried_sizes(inputs, asked.example, {}, rules))
        FreeBatchPass(batch, sizes)(model)
    added = _list_symbols(inputs) - before
    freed = batch is not None and (len(model.changes) > changes or bool(batch.symbols & added))
    DropUnreadNodesPass()(model)
    DropUnusedConstantsPass()(model)
    declare_outputs(model)
    return CleanedModel(model, reference, reason, asked, added, batch, freed, rules)


def _has_repeated_names(model: OnnxModel) -> bool:
    """True for a file that ONNX Runtime refuses, and that is the same network with other names."""
    names = [node.name for node in walk_nodes(model.graph) if node.name]
    return len(set(names)) < len(names)


def _list_symbols(inputs: Sequence[TensorSpec]) -> frozenset[str]:
    return frozenset(dim for spec in inputs for dim in spec.shape or () if isinstance(dim, str))


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


def _merge_rules(model: OnnxModel, multiples: Mapping[str, int]) -> tuple[SizeRule, ...]:
    symbols = _list_symbols(model.input_specs())
    for symbol in multiples:
        if symbol not in symbols:
            raise UsageError(
                f"there is no dynamic axis {symbol!r} to be a multiple of {multiples[symbol]}",
                hint=f"Dynamic axes: {', '.join(sorted(symbols)) or 'none'}.",
            )
    kept = [r for r in read_size_rules(model) if r.symbol in symbols - multiples.keys()]
    return (*kept, *(SizeRule(s, multiple_of=step, min=step) for s, step in multiples.items()))
