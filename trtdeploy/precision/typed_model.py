"""The one entrance: from an FP32 model and a recipe to a typed model and the reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass
from trtdeploy.precision.plan import PrecisionPlan
from trtdeploy.precision.planning import plan_precision
from trtdeploy.precision.recipe import Recipe
from trtdeploy.precision.typing_pass import ApplyPrecisionPass


@dataclass(frozen=True)
class TypedModel:
    """Result of a recipe.

    Attributes:
        model: The strongly typed model; save it with ``trtdeploy.graph.saving.save_model``.
        plan: Type and reason of every floating-point node.
    """

    model: OnnxModel
    plan: PrecisionPlan


def apply_recipe(
    model: OnnxModel,
    recipe: Recipe,
    *,
    pins: Sequence[str] = (),
    ranges: Mapping[str, float] | None = None,
    keep_io: bool = True,
) -> TypedModel:
    """Type ``model`` by ``recipe``; the given model is not changed.

    Args:
        model: An FP32 model as loaded.
        recipe: What to aim for.
        pins: Patterns of node names to keep FP32.
        ranges: Largest magnitude per value from an FP32 run of the same file.
        keep_io: Keep graph inputs and outputs FP32; False gives them the narrow type.

    Raises:
        ModelFileError: The opset cannot be raised to what the recipe needs.
        UsageError: A pin matches nothing.
    """
    typed = normalize_model(model)
    UpgradeOpsetPass(recipe.opset)(typed)
    index = build_index(typed)
    plan = plan_precision(index, recipe, pins=pins, ranges=ranges)
    ApplyPrecisionPass(plan, keep_io=keep_io).rewrite(index)
    return TypedModel(typed, plan)
