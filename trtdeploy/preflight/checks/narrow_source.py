"""FindNarrowSourceCheck: models that have left FP32 already."""

from __future__ import annotations

from collections.abc import Iterator

from trtdeploy.core.dtypes import DType
from trtdeploy.preflight.context import CheckContext
from trtdeploy.preflight.finding import WHOLE_GRAPH, Affects, Finding, FindingKind, Severity

NARROW_SOURCE = FindingKind("narrow-source", Severity.BLOCKER, Affects.BOTH)

_NARROW = (DType.FLOAT16, DType.BFLOAT16)


class FindNarrowSourceCheck:
    """Find FP16 and BF16 values under a recipe of another name.

    A recipe starts from FP32: what is FP16 already would stay FP16 in an engine called fp32.
    """

    def find(self, context: CheckContext) -> Iterator[Finding]:
        """Yield one finding per narrow type that the recipe is not about."""
        wanted = context.target.recipe.low
        found: dict[DType, str] = {}
        for scope in context.prepared.index.scopes:
            for name, dtype in scope.types.items():
                if dtype in _NARROW and dtype is not wanted:
                    found.setdefault(dtype, name)
        for dtype, name in found.items():
            yield NARROW_SOURCE.at(
                WHOLE_GRAPH,
                f"the model holds {dtype.label} values already, {name!r} for one; recipe "
                f"{context.target.recipe.name} starts from an FP32 model",
                "Give the FP32 model, or export the checkpoint again in FP32.",
            )
