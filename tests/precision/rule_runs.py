"""Runs of one precision rule on one model."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import ModelProto

from tests.builders import normalized
from trtdeploy.config.recipe import RECIPES
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.precision.context import RuleContext
from trtdeploy.precision.rules.rule import PrecisionRule


def make_context(
    model: ModelProto | OnnxModel, recipe: str = "fp16", ranges: Mapping[str, float] | None = None
) -> RuleContext:
    found = RECIPES[recipe]
    assert found.low is not None
    normal = normalized(model) if isinstance(model, ModelProto) else model
    return RuleContext(build_index(normal), found.low, ranges or {})


def find_kept(
    rule: PrecisionRule,
    model: ModelProto | OnnxModel,
    recipe: str = "fp16",
    ranges: Mapping[str, float] | None = None,
) -> dict[str, str]:
    """Return what the rule keeps: node name to first reason."""
    kept: dict[str, str] = {}
    for name, reason in rule.find(make_context(model, recipe, ranges)):
        assert reason
        kept.setdefault(name, reason)
    return kept
