"""The form a model has before it is calibrated and quantized."""

from __future__ import annotations

from trtdeploy.config.recipe import OPSET_OF_NARROW_SCALES, Recipe
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.adopt_contrib_quantization import AdoptContribQuantizationPass
from trtdeploy.graph.passes.drop_unused_constants import DropUnusedConstantsPass
from trtdeploy.graph.passes.fold_bias_adds import FoldBiasAddsPass
from trtdeploy.graph.passes.fold_constants import FoldConstantsPass
from trtdeploy.graph.passes.fold_integer_bias import FoldIntegerBiasPass
from trtdeploy.graph.passes.fold_weight_transposes import FoldWeightTransposesPass
from trtdeploy.graph.passes.fuse_batch_normalization import FuseBatchNormalizationPass
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass
from trtdeploy.precision.quantization.prequantized import has_pairs


def prepare_for_typing(model: OnnxModel, recipe: Recipe) -> OnnxModel:
    """Return a copy that ``recipe`` can type: normalised, with the opset that it needs.

    The Q/DQ pairs of a pre-quantized model get the form that TensorRT reads, and an opset whose
    pairs take the recipe's type.

    Raises:
        ModelFileError: The opset cannot be raised to what is needed.
    """
    prepared = normalize_model(model)
    AdoptContribQuantizationPass()(prepared)
    opset = recipe.opset
    if has_pairs(prepared) and not recipe.weak and recipe.low is not None:
        opset = max(opset, OPSET_OF_NARROW_SCALES)
    UpgradeOpsetPass(opset)(prepared)
    if has_pairs(prepared):
        FoldIntegerBiasPass()(prepared)
    return prepared


def prepare_for_quantization(model: OnnxModel, recipe: Recipe) -> OnnxModel:
    """Return the copy of ``model`` that calibration measures and quantization plans.

    Normalised, at the recipe's opset, with what belongs to a layer in the layer: batch
    normalisations, biases, transposes of weights. What is constant is folded first: Paddle reshapes
    each bias, which would look like the skip branch of a residual Add. The same file always gives
    the same names.

    Raises:
        ModelFileError: The opset cannot be raised to what the recipe needs.
    """
    prepared = prepare_for_typing(model, recipe)
    FoldWeightTransposesPass()(prepared)
    FoldConstantsPass()(prepared)
    DropUnusedConstantsPass()(prepared)
    FoldBiasAddsPass()(prepared)
    FuseBatchNormalizationPass()(prepared)
    return prepared
