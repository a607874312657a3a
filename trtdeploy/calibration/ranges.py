"""Ranges of a model's values, from sample inputs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from trtdeploy.backends.onnxruntime.model import measure_amax
from trtdeploy.config.recipe import Recipe
from trtdeploy.core.arrays import Feeds
from trtdeploy.core.dtypes import DType
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typing_source import TypingSource
from trtdeploy.samples.opening import open_samples


def measure_ranges(source: TypingSource) -> dict[str, float] | None:
    """Return the largest magnitude of every FP32 value of the main graph, as the data show it.

    Samples are run in batches of the usual size, one batch in memory at a time.

    Returns:
        None when there is no data to measure with, or no use for ranges.

    Raises:
        InputError: The samples cannot be used.
    """
    data, recipe = source.request.data, source.options.recipe
    if data is None or recipe.low is None:
        return None
    samples = open_samples(data, source.model.input_specs(), source.profile.preprocessing)
    ranges: dict[str, float] = {}

    def iterate_feeds() -> Iterator[Feeds]:
        for batch in samples.iterate_batches(source.sizes.opt_shapes):
            for name, values in batch.feeds.items():
                if values.dtype == np.float32 and values.size:
                    ranges[name] = max(ranges.get(name, 0.0), float(np.abs(values).max()))
            yield batch.feeds

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probed.onnx"
        save_model(_expose_values(source.model, recipe), path)
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
