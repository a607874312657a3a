"""Loading what the real pipeline wrote: a typed model in ONNX Runtime, and an engine of RTX."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import trtdeploy
from tests.backends.fake_device_memory import FakeDeviceMemory
from tests.builders import random_array
from tests.building.models import save_convnet
from tests.conftest import find_no_gpu_reason
from trtdeploy.backends.installed import is_installed
from trtdeploy.building.manifest import BuiltFolder, load_manifest
from trtdeploy.core.errors import (
    EngineFileError,
    EngineMismatchError,
    MissingDependencyError,
    NotPossibleError,
)
from trtdeploy.runtime import loading
from trtdeploy.runtime.load_check import read_checked_plan

needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)
without_gpu = pytest.mark.skipif(
    find_no_gpu_reason() is None, reason="this machine has a GPU; tests/gpu runs the engine"
)


@pytest.fixture(scope="module")
def cpu_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpu")
    model = save_convnet(folder / "net.onnx")
    return trtdeploy.build(model, "cpu-fp32", output_dir=folder / "out").folder


@pytest.fixture(scope="module")
def rtx_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rtx")
    model = save_convnet(folder / "net.onnx")
    return trtdeploy.build(model, "rtx4090-fp16", output_dir=folder / "out").folder


def test_a_typed_model_runs_as_the_baseline_does(cpu_folder: Path) -> None:
    images = random_array(2, 3, 64, 64)
    with trtdeploy.load(cpu_folder) as session, trtdeploy.load(
        cpu_folder.parent / "net.onnx"
    ) as baseline:  # fmt: skip
        assert session.inputs == baseline.inputs
        found = session.run({"images": images})["scores"]
        np.testing.assert_array_equal(found, baseline.run({"images": images})["scores"])


def test_a_typed_model_that_was_changed(cpu_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in cpu_folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    trtdeploy.load(copy).close()
    (copy / "model.onnx").write_bytes((copy / "model.onnx").read_bytes() + b"\0")
    with pytest.raises(EngineFileError, match=r"has SHA-256 .*manifest says") as info:
        trtdeploy.load(copy)
    assert "trtdeploy build net.onnx --profile cpu-fp32" in info.value.hint
    (copy / "model.onnx").unlink()
    with pytest.raises(EngineFileError, match="missing"):
        trtdeploy.load(copy)


@needs_rtx
def test_the_pipeline_records_what_loading_checks(rtx_folder: Path) -> None:
    manifest = load_manifest(rtx_folder)
    built = BuiltFolder(rtx_folder, manifest)
    assert read_checked_plan(built)[:4] == b"vtrt"
    assert manifest.compile is not None
    assert manifest.compile.request.low_dtype == "float16"
    assert manifest.compile.options.compute_capabilities == ("8.9",)
    assert manifest.compile.platform.startswith("Linux")
    assert manifest.optimization_profiles[0].shapes["images"].min == (1, 3, 64, 64)
    assert built.inputs == {"images": ("batch", 3, 64, 64)}


@needs_rtx
def test_a_recipe_edited_by_hand_is_noticed(rtx_folder: Path, tmp_path: Path) -> None:
    manifest = json.loads((rtx_folder / "manifest.json").read_text())
    manifest["profile"]["profile"]["recipe"] = "bf16"
    for path in rtx_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(EngineFileError, match="recipe bf16, and the engine was compiled for fp16"):
        trtdeploy.load(tmp_path)


@needs_rtx
@without_gpu
def test_an_engine_is_not_run_without_a_gpu(rtx_folder: Path) -> None:
    with pytest.raises((NotPossibleError, MissingDependencyError), match="GPU") as info:
        trtdeploy.load(rtx_folder)
    assert info.value.exit_code in (4, 5)


@needs_rtx
@without_gpu
def test_the_real_rtx_refuses_before_it_deserialises(
    rtx_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told that there is a GPU, TensorRT-RTX finds none and says so, without a crash."""
    monkeypatch.setattr(loading, "open_device_memory", lambda _index: FakeDeviceMemory("8.9"))
    with pytest.raises((EngineMismatchError, NotPossibleError), match=r"TensorRT-RTX 1\."):
        trtdeploy.load(rtx_folder)
