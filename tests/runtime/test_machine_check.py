"""Engines that are intact and made for another machine, or that want more than they are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import trtdeploy
from tests.backends.fake_device_memory import FakeDeviceMemory
from trtdeploy import SessionOptions
from trtdeploy.backends.cuda.local_gpu import LocalGpu
from trtdeploy.core.errors import EngineMismatchError, UsageError
from trtdeploy.runtime import machine_check

from .folders import Folder, Use, make_machine, put, refuse

MACHINES: dict[str, tuple[dict[str, Any], str, dict[str, Any], tuple[str, ...]]] = {
    "version": ({"version": "10.3.0"}, "10.7.0", {}, ("TensorRT 10.3.0", "TensorRT 10.7.0")),
    "older version": ({"version": "11.0.0.114"}, "10.16.1.11", {}, ("11.0.0.114", "10.16.1.11")),
    "rtx version": (
        {"version": "1.6.0.5", "backend": "tensorrt_rtx"},
        "rtx-1.7.1.116",
        {},
        ("TensorRT-RTX 1.6.0.5", "TensorRT-RTX 1.7.1.116"),
    ),
    "8 to 11": (
        {"version": "8.6.1", "options": {"version_compatible": True}},
        "11.0.0.114",
        {},
        ("8.6.1", "11.0.0.114", "8 to 10 and from 10 to 11"),
    ),
    "compute capability": (
        {},
        "10.3.0",
        {"compute_capability": "8.7", "name": "Orin"},
        ("capability 8.9", "Orin (8.7)"),
    ),
    "ampere and newer": (
        {"options": {"hardware_compatibility": "ampere_plus"}},
        "10.3.0",
        {"compute_capability": "7.5", "name": "T4"},
        ("8.9 and other GPUs from 8.0 on", "T4 (7.5)"),
    ),
    "rtx compute capability": (
        {"version": "1.7.1.116", "backend": "tensorrt_rtx"},
        "rtx-1.7.1.116",
        {"compute_capability": "12.0", "name": "RTX 5090"},
        ("capability 8.9 (Fake device)", "RTX 5090 (12.0)"),
    ),
}


@pytest.mark.parametrize(("made", "version", "gpu", "said"), MACHINES.values(), ids=MACHINES.keys())
def test_an_engine_for_another_machine(
    made: dict[str, Any],
    version: str,
    gpu: dict[str, Any],
    said: tuple[str, ...],
    tmp_path: Path,
    use: Use,
) -> None:
    machine = use(make_machine(version, FakeDeviceMemory(**gpu)))
    folder = Folder(tmp_path / "f", **made).write()
    error = refuse(folder, machine)
    assert isinstance(error, EngineMismatchError)
    assert error.exit_code == 5
    for part in said:
        assert part in str(error)
    assert "trtdeploy build" in error.hint


def test_another_platform(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.change(put("compile.platform", "Linux aarch64"))
    error = refuse(folder, machine)
    assert "compiled on Linux aarch64, and this machine is Linux x86_64" in str(error)
    assert f"trtdeploy build {folder.path} --rebuild" in error.hint


def test_engines_of_rtx_are_portable(tmp_path: Path, use: Use) -> None:
    use(make_machine("rtx-1.7.1.116"))
    folder = Folder(tmp_path / "f", "tensorrt_rtx", "1.7.1.116").write()
    folder.change(put("compile.platform", "Windows AMD64"))
    trtdeploy.load(folder.path).close()


def test_ampere_compatible_engines_run_on_newer_gpus(tmp_path: Path, use: Use) -> None:
    use(make_machine("10.3.0", FakeDeviceMemory("9.0")))
    folder = Folder(tmp_path / "f", options={"hardware_compatibility": "ampere_plus"}).write()
    trtdeploy.load(folder.path).close()


def test_another_gpu_of_the_same_capability_is_a_warning(
    tmp_path: Path, use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    use(make_machine("10.3.0", FakeDeviceMemory("8.9", "L4")))
    trtdeploy.load(Folder(tmp_path / "f").write().path).close()
    assert "compiled on Fake GPU and runs on L4, another model of the same" in caplog.text


def test_portable_engines_are_at_home_on_every_model(
    tmp_path: Path, use: Use, caplog: pytest.LogCaptureFixture
) -> None:
    use(make_machine("10.3.0", FakeDeviceMemory("8.9", "L4")))
    options = {"hardware_compatibility": "same_compute_capability"}
    trtdeploy.load(Folder(tmp_path / "f", options=options).write().path).close()
    assert caplog.text == ""


@pytest.mark.parametrize(("module", "warned"), [("Orin Nano 8 GB", False), ("AGX Orin", True)])
def test_modules_of_jetson_share_the_name_that_cuda_knows(
    module: str,
    warned: bool,
    tmp_path: Path,
    use: Use,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(make_machine("10.3.0", FakeDeviceMemory("8.7", "Orin")))
    here = LocalGpu("Jetson Orin Nano 8 GB", "8.7")
    monkeypatch.setattr(machine_check, "find_local_gpu", lambda: here)
    folder = Folder(tmp_path / "f", compute_capability="8.7").write()
    folder.change(put("compile.gpu.name", f"Jetson {module}"))
    trtdeploy.load(folder.path).close()
    assert ("another model" in caplog.text) == warned


COMPATIBLE = {"version_compatible": True}


@pytest.mark.parametrize("version", ["10.3.0", "10.7.0", "11.4.0.106"])
def test_host_code_runs_with_permission_only(version: str, tmp_path: Path, use: Use) -> None:
    machine = use(make_machine(version))
    folder = Folder(tmp_path / "f", options=COMPATIBLE).write()
    error = refuse(folder, machine)
    assert isinstance(error, UsageError)
    assert "execute code from that file" in str(error)
    assert "allow_host_code=True" in error.hint
    trtdeploy.load(folder.path, allow_host_code=True).close()
    asked = machine.trt.calls.select("Runtime", "engine_host_code_allowed", "set")
    assert [record.args for record in asked] == [(True,)]


def test_a_permission_that_is_not_needed_is_not_used(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    trtdeploy.load(Folder(tmp_path / "f").write().path, allow_host_code=True).close()
    assert machine.trt.calls.select("Runtime", "engine_host_code_allowed", "set") == []


LEAN = {"version_compatible": True, "exclude_lean_runtime": True}


def test_a_plan_without_lean_runtime(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.7.0"))
    folder = Folder(tmp_path / "f", options=LEAN).write()
    error = refuse(folder, machine, allow_host_code=True)
    assert "of TensorRT 10.3.0 and carries no lean runtime" in str(error)
    assert "lean_runtime=" in error.hint
    lean = SessionOptions(lean_runtime="libnvinfer_lean.so.10")
    trtdeploy.load(folder.path, options=lean, allow_host_code=True).close()
    (loaded,) = machine.trt.calls.select("Runtime", "load_runtime")
    assert loaded.args == ("libnvinfer_lean.so.10",)
    assert machine.trt.calls.select("Runtime", "engine_host_code_allowed", "set") == []


def test_a_lean_runtime_for_an_engine_that_takes_none(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    options = SessionOptions(lean_runtime="x.so")
    error = refuse(Folder(tmp_path / "f").write(), machine, options=options)
    assert "takes no lean runtime" in str(error)


@pytest.mark.parametrize(
    ("backend", "option"),
    [
        ("tensorrt", {"runtime_cache": "c"}),
        ("tensorrt", {"threads": 2}),
        ("tensorrt_rtx", {"lean_runtime": "x.so"}),
    ],
)
def test_an_option_that_a_backend_lacks(
    backend: str, option: dict[str, Any], tmp_path: Path, use: Use
) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f", backend).write()
    error = refuse(folder, machine, options=SessionOptions(**option))
    assert isinstance(error, UsageError)
    assert f"no session option {next(iter(option))}" in str(error)
