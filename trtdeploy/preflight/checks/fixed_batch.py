"""FindFixedBatchCheck: graphs that fit together for one batch size only."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.config.batch_layout import find_batch
from trtdeploy.preflight.checks.fixed_reshapes import EXPORT_DYNAMIC, FIXED_INSIDE
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import Finding, Severity
from trtdeploy.preflight.inference import Sizes
from trtdeploy.preflight.shape_conflict import describe_inputs
from trtdeploy.preflight.symbols import read_profile_sizes

_TRIED = 96
"""Hardly anybody exports with this batch, and it divides well and exceeds every kernel, should the
axis be a sequence after all."""


class FindFixedBatchCheck:
    """Set every batch axis to a size and look for nodes whose inputs then no longer fit together.

    Finds constants with the example's batch size, e.g. a class token of shape 1x1x192 that is
    concatenated without being expanded. Other axes are left alone: a size there may break a
    rule of the model, such as "multiple of 32".
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per node that stops fitting."""
        specs = context.structure.specs
        batches = find_batch(list(specs.values())).symbols
        if not batches:
            return
        pinned = all(read_profile_sizes(context, symbol) == {1} for symbol in batches)
        known = context.symbolic.errors
        tried = context.structure.infer(
            Sizes(
                {
                    spec.name: tuple(_TRIED if dim in batches else dim for dim in spec.shape)
                    for spec in specs.values()
                    if spec.shape is not None
                }
            )
        )
        for key, reason in tried.errors.items():
            if key in known:
                continue
            yield FIXED_INSIDE.at(
                context.place_of_key(key),
                f"declared dynamic but fixed inside: with a batch of {_TRIED} "
                f"{describe_inputs(context, key, tried)} do not fit together ({reason})",
                EXPORT_DYNAMIC,
                severity=Severity.HAZARD if pinned else None,
            )
