"""Ranges of a model's values, from sample inputs."""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from trtdeploy.backends.onnxruntime_model import measure_amax
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError
from trtdeploy.graph.index import build_index
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.normalization import normalize_model
from trtdeploy.graph.passes.upgrade_opset import UpgradeOpsetPass
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.recipe import Recipe


def measure_model_ranges(model: OnnxModel, recipe: Recipe, data: Path) -> dict[str, float]:
    """Return the largest magnitude of every FP32 value of the main graph.

    Args:
        model: As loaded.
        recipe: Its opset decides how values are named after conversion.
        data: An ``.npz`` file with one array per input, run as one batch.

    Raises:
        InputError: The file is not an ``.npz`` of the model's inputs.
    """
    probed = normalize_model(model)
    UpgradeOpsetPass(recipe.opset)(probed)
    index = build_index(probed)
    outputs = {value.name for value in probed.graph.output}
    for name, dtype in index.main.types.items():
        if dtype is DType.FLOAT32 and name in index.main.producers and name not in outputs:
            probed.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
    feeds = load_feeds(model, data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "probed.onnx"
        save_model(probed, path)
        ranges = measure_amax(path, [feeds])
    for name, values in feeds.items():
        if values.dtype == np.float32 and values.size:
            ranges[name] = float(np.abs(values).max())
    return ranges


def load_feeds(model: OnnxModel, data: Path) -> dict[str, Any]:
    """Return the arrays of an ``.npz`` file, one per input of the model.

    Raises:
        InputError: Not such a file, an input is missing, or a type differs.
    """
    specs = model.input_specs()
    try:
        with np.load(data, allow_pickle=False) as archive:
            given = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, zipfile.BadZipFile, AttributeError) as error:
        raise InputError(
            f"{data} cannot be read as an .npz file of arrays: {error}",
            hint="Write it with numpy.savez(path, input_name=array, ...).",
        ) from error
    missing = [spec.name for spec in specs if spec.name not in given]
    if missing:
        raise InputError(
            f"{data} has no array for input {', '.join(map(repr, missing))}; "
            f"it has {', '.join(map(repr, given)) or 'none'}",
            hint="Name the arrays after the model's inputs.",
        )
    return {spec.name: given[spec.name] for spec in specs}
