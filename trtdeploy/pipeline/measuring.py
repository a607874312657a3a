"""Ranges of a model's values, from sample inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from trtdeploy.backends.onnxruntime_model import measure_amax
from trtdeploy.config.recipe import Recipe
from trtdeploy.core.dtypes import DType
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass
from trtdeploy.graph.saving import save_model
from trtdeploy.parity.samples_source import SampleSource


def measure_model_ranges(
    model: OnnxModel, recipe: Recipe, source: SampleSource, profile: OptimizationProfile
) -> dict[str, float]:
    """Return the largest magnitude of every FP32 value of the main graph.

    Args:
        model: As loaded.
        recipe: Its opset decides how values are named after conversion.
        source: Samples; run in batches of the profile's usual size, one batch in memory at a time.
        profile: Says how large a batch usually is.
    """
    ranges: dict[str, float] = {}
    shapes = {name: shape.opt for name, shape in profile.shapes.items()}

    def iterate_feeds() -> Iterator[Mapping[str, Any]]:
        for batch in source.iterate_batches(shapes):
            for name, values in batch.feeds.items():
                if values.dtype == np.float32 and values.size:
                    ranges[name] = max(ranges.get(name, 0.0), float(np.abs(values).max()))
            yield batch.feeds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probed.onnx"
        save_model(_expose_values(model, recipe), path)
        ranges.update(measure_amax(path, iterate_feeds()))
    return ranges


def _expose_values(model: OnnxModel, recipe: Recipe) -> OnnxModel:
    """Return a copy of the model in which every FP32 value is an output."""
    probed = normalize_model(model)
    UpgradeOpsetPass(recipe.opset)(probed)
    main = build_index(probed).main
    for name, dtype in main.types.items():
        if dtype is DType.FLOAT32 and name in main.producers and name not in main.outputs:
            probed.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    return probed
