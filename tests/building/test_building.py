"""Whole builds with the real TensorRT-RTX."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest

import trtdeploy
from tests.building.models import save_convnet, save_unsupported
from trtdeploy.backends.installed import is_installed
from trtdeploy.building.folder_check import is_intact
from trtdeploy.building.manifest import BuiltFolder, load_manifest
from trtdeploy.building.request import BuildRequest
from trtdeploy.config.shape_syntax import parse_shape_table
from trtdeploy.core.errors import (
    CompileError,
    InputError,
    ModelFileError,
    NotPossibleError,
    UsageError,
)

needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return save_convnet(tmp_path / "net.onnx")


@needs_rtx
@pytest.mark.parametrize(
    ("profile", "dtype"),
    [("rtx4090-fp16", "HALF"), ("rtx4090-bf16", "BF16"), ("rtx4090-fp32", "FLOAT")],
)
def test_a_build_writes_one_whole_folder(model: Path, profile: str, dtype: str) -> None:
    result = trtdeploy.build(model, profile)
    assert result.folder == Path(f"net.{profile}")
    assert result.engine_path is not None
    assert result.engine_path.read_bytes()[:4] == b"vtrt"
    assert {p.name for p in result.folder.iterdir()} == {
        "model.onnx", "model.engine", "manifest.json", "report.json", "report.html",
        "junit.xml", "build.log", "reproduce.sh",
    }  # fmt: skip
    manifest = json.loads((result.folder / "manifest.json").read_text())
    assert manifest["compile"]["precision"]["layers"][dtype] > 0
    assert manifest["profile"]["device"]["compute_capability"] == "8.9"
    steps = {step["name"]: step["status"] for step in manifest["steps"]}
    assert steps == {
        "load": "ok",
        "check": "ok",
        "type": "ok",
        "compile": "ok",
        "parity": "ok",
    }
    onnx.checker.check_model(str(result.model_path), full_check=True)


@needs_rtx
def test_the_same_build_is_recognised_and_rebuild_forces(model: Path) -> None:
    first = trtdeploy.build(model, "rtx4090-fp16")
    stamp = first.engine_path.stat().st_mtime_ns  # type: ignore[union-attr]
    again = trtdeploy.build(model, "rtx4090-fp16")
    assert again.reused
    assert again.engine_path.stat().st_mtime_ns == stamp  # type: ignore[union-attr]
    forced = trtdeploy.build(BuildRequest(model, "rtx4090-fp16", rebuild=True))
    assert not forced.reused


@needs_rtx
@pytest.mark.parametrize(
    "change",
    [
        lambda folder, model: (folder / "model.engine").write_bytes(b"tampered"),
        lambda folder, model: (folder / "model.onnx").unlink(),
        lambda folder, model: (folder / "manifest.json").write_text("{}"),
        lambda folder, model: save_convnet(model, seed=1),
    ],
    ids=["engine tampered", "model missing", "manifest damaged", "other source"],
)
def test_a_result_that_does_not_match_is_built_again(model: Path, change: object) -> None:
    first = trtdeploy.build(model, "rtx4090-fp16")
    change(first.folder, model)  # type: ignore[operator]
    assert not trtdeploy.build(model, "rtx4090-fp16").reused
    assert (first.folder / "model.engine").read_bytes()[:4] == b"vtrt"


def test_a_device_elsewhere_gives_a_prepared_folder(model: Path) -> None:
    result = trtdeploy.build(model, "orin-fp16")
    assert (result.status, result.engine_path) == ("prepared", None)
    assert "Jetson Orin Nano" in result.reason
    assert "trtdeploy build net.orin-fp16" in result.next_step
    assert not (result.folder / "model.engine").exists()
    assert trtdeploy.build(model, "orin-fp16").reused


def test_a_prepared_folder_cannot_be_compiled_here_and_says_why(model: Path) -> None:
    folder = trtdeploy.build(model, "h100-fp16").folder
    with pytest.raises(NotPossibleError, match="NVIDIA H100"):
        trtdeploy.build(folder)


@needs_rtx
def test_a_prepared_folder_is_compiled_where_that_is_possible(model: Path) -> None:
    prepared = trtdeploy.build(BuildRequest(model, "rtx4090-fp16", prepare_only=True))
    assert prepared.engine_path is None
    built = trtdeploy.build(prepared.folder)
    assert built.folder == prepared.folder
    assert built.engine_path is not None
    assert built.engine_path.read_bytes()[:4] == b"vtrt"
    assert built.manifest.source == prepared.manifest.source
    assert trtdeploy.build(prepared.folder).reused


def test_a_changed_prepared_folder_is_refused(model: Path) -> None:
    folder = trtdeploy.build(model, "orin-fp16").folder
    (folder / "model.onnx").write_bytes(b"something else")
    with pytest.raises(InputError, match=r"model\.onnx has SHA-256 \w+, and its manifest says"):
        trtdeploy.build(folder)


def test_options_do_not_go_with_a_prepared_folder(model: Path) -> None:
    folder = trtdeploy.build(model, "orin-fp16").folder
    with pytest.raises(UsageError, match="--pin"):
        trtdeploy.build(BuildRequest(folder, pins=("relu",)))


def test_a_manifest_cannot_lead_out_of_its_folder(model: Path) -> None:
    folder = trtdeploy.build(model, "orin-fp16").folder
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["typed_model"]["files"] = {"../net.onnx": "0"}
    path.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="not in its folder"):
        trtdeploy.build(folder)


def test_onnxruntime_is_a_target_too(model: Path) -> None:
    result = trtdeploy.build(model, "rpi5-fp16")
    assert result.engine_path == result.folder / "model.onnx"
    assert result.status == "engine"


def test_blockers_stop_a_build_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    bad = save_unsupported(tmp_path / "bad.onnx")
    with pytest.raises(ModelFileError, match="FancyWarp"):
        trtdeploy.build(bad, "orin-fp16")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.onnx", "net.onnx"]


@needs_rtx
def test_a_compiler_failure_keeps_only_the_log(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: object, log_path: Path, **_: object) -> None:
        log_path.write_text("the compiler said no")
        raise CompileError("no engine", hint="try again.")

    monkeypatch.setattr("trtdeploy.building.compiling.compile_engine", fail)
    with pytest.raises(CompileError) as caught:
        trtdeploy.build(model, "rtx4090-fp16")
    assert "net.rtx4090-fp16.failed.log" in caught.value.hint
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.rtx4090-fp16.failed.log"]


@needs_rtx
def test_reproduce_script_makes_the_same_build(model: Path, tmp_path: Path) -> None:
    first = trtdeploy.build(model, "rtx4090-fp16", pins=["relu"], overrides=["build.aux_streams=1"])
    program = tmp_path / "bin" / "trtdeploy"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trtdeploy "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    script = (first.folder / "reproduce.sh").resolve()
    command = ["sh", str(script), "--output", "json", "--output-dir", "again"]
    done = subprocess.run(command, capture_output=True, env=environment, check=True)
    again = json.loads(done.stdout)
    assert Path(again["model"]).read_bytes() == first.model_path.read_bytes()


def test_sample_data_finds_what_overflows(model: Path, tmp_path: Path) -> None:
    import numpy as np

    np.savez(tmp_path / "data.npz", images=np.full((1, 3, 64, 64), 1e5, np.float32))
    request = BuildRequest(model, "rpi5-fp16", data=tmp_path / "data.npz")
    nodes = trtdeploy.build(request).manifest.precision.nodes
    assert nodes["conv"].dtype.label == "float32"
    assert nodes["conv"].rule == "KeepMeasuredRangeRule"


KILLS = int(os.environ.get("TRTDEPLOY_TEST_KILLS", "12"))


@needs_rtx
@pytest.mark.timeout(1200)
def test_killed_builds_leave_nothing_half_written(model: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trtdeploy", "build", "net.onnx", "-p", "rtx4090-fp16"]
    started = time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    whole_s = time.monotonic() - started
    moments = random.Random(0)
    folder = tmp_path / "net.rtx4090-fp16"
    for _ in range(KILLS):
        process = subprocess.Popen(
            [*command, "--rebuild"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        time.sleep(moments.uniform(0, whole_s))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if folder.exists():
            manifest = load_manifest(folder)
            assert is_intact(BuiltFolder(folder, manifest))
            assert manifest.status == "engine"
    time.sleep(2.1)  # younger leftovers may belong to a build that has just started
    subprocess.run([*command, "--rebuild"], check=True, capture_output=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.onnx", "net.rtx4090-fp16"]


def test_an_engine_is_not_replaced_by_a_prepared_folder(model: Path) -> None:
    built = trtdeploy.build(model, "rpi5-fp16")
    again = trtdeploy.build(BuildRequest(model, "rpi5-fp16", prepare_only=True))
    assert again.reused
    assert again.status == built.status == "engine"


def test_small_external_data_is_part_of_the_key(tmp_path: Path, model: Path) -> None:
    proto = onnx.load(model)
    onnx.save(proto, "ext.onnx", save_as_external_data=True, location="ext.bin", size_threshold=0)
    trtdeploy.build("ext.onnx", "rpi5-fp16")
    assert trtdeploy.build("ext.onnx", "rpi5-fp16").reused
    data = bytearray((tmp_path / "ext.bin").read_bytes())
    data[-1] ^= 1
    (tmp_path / "ext.bin").write_bytes(data)
    assert not trtdeploy.build("ext.onnx", "rpi5-fp16").reused


def test_a_prepared_folder_reads_only_its_own_plain_files(model: Path, tmp_path: Path) -> None:
    folder = trtdeploy.build(model, "orin-fp16").folder
    (tmp_path / "secret").write_bytes((folder / "model.onnx").read_bytes())
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="not a plain file"):
        trtdeploy.build(folder)


def test_reproduce_script_spells_a_fixed_size_too(model: Path) -> None:
    shapes = parse_shape_table(["images:2x3x64x64"])
    result = trtdeploy.build(BuildRequest(model, "rpi5-fp16", shapes=shapes))
    assert "--shape images:2x3x64x64" in (result.folder / "reproduce.sh").read_text()


def test_a_model_that_left_fp32_is_not_called_fp32(model: Path) -> None:
    typed = trtdeploy.build(model, "rpi5-fp16").model_path
    with pytest.raises(ModelFileError, match="float16 values already"):
        trtdeploy.build(typed, "cpu-fp32", output_dir="again")
