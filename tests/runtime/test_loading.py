"""``trtdeploy.load`` from folder to outputs, and every reason for which it refuses."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trtdeploy
from tests.backends.fake_device_memory import FakeDeviceMemory
from tests.building.models import save_convnet
from tests.contract.session_cases import ramp
from trtdeploy import SessionOptions
from trtdeploy.core.errors import (
    EngineFileError,
    EngineMismatchError,
    InputError,
    NotPossibleError,
    TrtdeployError,
    UsageError,
)
from trtdeploy.runtime import loading

from .folders import PROFILE, Change, Folder, Use, make_machine, make_plan, put, refuse

VERSIONS = [("tensorrt", "8.6.1"), ("tensorrt", "10.3.0"), ("tensorrt", "11.4.0.106"),
            ("tensorrt_rtx", "rtx-1.7.1.116")]  # fmt: skip


@pytest.mark.parametrize(("backend", "version"), VERSIONS)
def test_a_folder_is_loaded_by_the_backend_of_its_manifest(
    backend: str, version: str, tmp_path: Path, use: Use
) -> None:
    machine = use(make_machine(version))
    folder = Folder(tmp_path / "f", backend, machine.trt.__version__).write()
    with trtdeploy.load(folder.path) as session:
        assert session.inputs[0].shape == ("batch", 3)
        assert np.array_equal(session.run({"x": ramp(2, 3)})["y"], ramp(2, 3) * 2)
    (loaded,) = machine.trt.calls.select("Runtime", "deserialize_cuda_engine")
    assert loaded.args == (folder.engine.read_bytes(),)
    assert machine.trt.calls.select("Runtime", "engine_host_code_allowed", "set") == []
    assert (machine.memory.live, machine.memory.streams) == ({}, set())


def cut(folder: Folder) -> None:
    folder.engine.write_bytes(folder.engine.read_bytes()[:100])


def flip(folder: Folder) -> None:
    content = bytearray(folder.engine.read_bytes())
    content[-1] ^= 1
    folder.engine.write_bytes(content)


FILES: dict[str, tuple[Callable[[Folder], object], tuple[str, ...]]] = {
    "truncated": (cut, ("100 bytes", "manifest says 200")),
    "garbage": (lambda f: f.engine.write_bytes(b"garbage" * 9), ("b'garb'", "b'ftrt'")),
    "empty": (lambda f: f.engine.write_bytes(b""), ("is empty",)),
    "header only": (lambda f: f.engine.write_bytes(b"ftrt"), ("b'ftrt'",)),
    "missing": (lambda f: f.engine.unlink(), ("No such file",)),
    "a folder": (lambda f: (f.engine.unlink(), f.engine.mkdir()), ("Is a directory",)),
    "one bit": (flip, ("has SHA-256", "manifest says")),
    "another product": (
        lambda f: f.engine.write_bytes(make_plan((10, 3, 0), b"vtrt")),
        ("plan of TensorRT-RTX", "manifest says TensorRT"),
    ),
    "another version": (
        lambda f: f.engine.write_bytes(make_plan((10, 4, 0))),
        ("10.4.0.0", "10.3.0"),
    ),
    "ultralytics": (
        lambda f: f.engine.write_bytes(b"\x02\0\0\0{}" + make_plan((10, 3, 0))),
        ("6 bytes of Ultralytics metadata", "plain plan"),
    ),
    "another model": (
        lambda f: (f.path / "model.onnx").write_bytes(b"another"),
        ("model.onnx has SHA-256", "manifest says"),
    ),
}


@pytest.mark.parametrize(("damage", "said"), FILES.values(), ids=FILES.keys())
def test_files_that_are_not_those_of_the_manifest(
    damage: Callable[[Folder], object], said: tuple[str, ...], tmp_path: Path, use: Use
) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    damage(folder)
    error = refuse(folder, machine)
    assert isinstance(error, EngineFileError)
    for part in said:
        assert part in str(error)
    assert "trtdeploy build" in error.hint
    assert "--rebuild" in error.hint


def rename_model(manifest: dict[str, Any]) -> None:
    manifest["typed_model"] |= {"sha256": "1" * 64, "files": {"model.onnx": "1" * 64}}


WIDER = {**PROFILE, "shapes": {"x": {"min": [1, 3], "opt": [2, 3], "max": [9, 3]}}}
MANIFESTS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "recipe": (
        put("profile.profile.recipe", "int8"),
        ("recipe int8", "precision plan is of fp16", "compiled for fp16"),
    ),
    "plan": (put("precision.recipe", "bf16"), ("recipe fp16", "of bf16")),
    "precision": (
        put("compile.precision.layers", {"FLOAT": 3}),
        ("precision float16", "layers are {'FLOAT': 3}"),
    ),
    "optimization profile": (put("optimization_profiles", [WIDER]), ("(9, 3)", "(4, 3)")),
    "model": (rename_model, ("typed model 1111", "compiled for ")),
    "device": (
        put("profile.device.compute_capability", "8.7"),
        ("compute capability 8.7", "compiled on Fake GPU (8.9)"),
    ),
    "backend": (
        put("compile.request.module", "tensorrt_rtx"),
        ("backend tensorrt,", "compiled for tensorrt_rtx"),
    ),
    "no record": (put("compile", None), ("does not say how the engine was compiled",)),
}


@pytest.mark.parametrize(("change", "said"), MANIFESTS.values(), ids=MANIFESTS.keys())
def test_a_manifest_that_does_not_describe_its_engine(
    change: Change, said: tuple[str, ...], tmp_path: Path, use: Use
) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.change(change)
    error = refuse(folder, machine)
    assert isinstance(error, EngineFileError)
    for part in said:
        assert part in str(error)
    assert "trtdeploy build net.onnx --profile fake-fp16" in error.hint


def test_an_unproven_precision_is_the_builds_own_verdict(tmp_path: Path, use: Use) -> None:
    use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.change(put("compile.precision", {"proven_by": "nothing: ...", "layers": {}}))
    trtdeploy.load(folder.path).close()


def list_places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the place of every entry of a manifest."""
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, entry in entries:
        found.append((*place, key))
        if isinstance(entry, dict | list):
            found += list_places(entry, (*place, key))
    return found


@pytest.mark.parametrize("junk", [None, 7, "junk", [], {}, [{}]])
def test_no_damage_to_a_manifest_is_a_crash(junk: Any, tmp_path: Path, use: Use) -> None:
    """Every entry in turn becomes junk: an expected error, or an engine that still is the one."""
    use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    text = (folder.path / "manifest.json").read_text()
    loaded = 0
    for *path, last in list_places(json.loads(text)):
        manifest = json.loads(text)
        place: Any = manifest
        for key in path:
            place = place[key]
        place[last] = junk
        (folder.path / "manifest.json").write_text(json.dumps(manifest))
        with suppress(TrtdeployError):
            trtdeploy.load(folder.path).close()
            loaded += 1
    assert loaded < 40


def test_other_tensors_than_the_manifest_lists(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.change(put("source.outputs", [{"name": "scores", "dtype": "float32", "shape": None}]))
    with pytest.raises(EngineMismatchError, match=r"outputs \['y'\].*says .*\['scores'\]"):
        trtdeploy.load(folder.path)
    assert machine.memory.live == {}


def test_a_prepared_folder_holds_no_engine(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.change(put("engine", None))
    folder.change(put("status", "prepared"))
    error = refuse(folder, machine)
    assert isinstance(error, NotPossibleError)
    assert "prepared for Fake device and holds no engine yet" in str(error)
    assert f"trtdeploy build {folder.path}" in error.hint


def test_a_read_only_folder_is_enough(tmp_path: Path, use: Use) -> None:
    use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    before = sorted(path.stat().st_mtime_ns for path in folder.path.iterdir())
    for path in folder.path.iterdir():
        path.chmod(0o444)
    folder.path.chmod(0o555)
    try:
        with trtdeploy.load(folder.path) as session:
            session.run({"x": ramp(1, 3)})
    finally:
        folder.path.chmod(0o755)
    assert sorted(path.stat().st_mtime_ns for path in folder.path.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_engine_that_may_not_be_read(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    folder.engine.chmod(0)
    assert "Permission denied" in str(refuse(folder, machine))


def test_what_was_checked_is_what_is_loaded(
    tmp_path: Path, use: Use, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be swapped after the check: the bytes in memory are used."""
    machine = use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    plan = folder.engine.read_bytes()

    def swap(_index: int) -> FakeDeviceMemory:
        folder.engine.write_bytes(b"another engine")
        return machine.memory

    monkeypatch.setattr(loading, "open_device_memory", swap)
    trtdeploy.load(folder.path).close()
    (loaded,) = machine.trt.calls.select("Runtime", "deserialize_cuda_engine")
    assert loaded.args == (plan,)


def test_a_bare_engine_needs_an_explicit_flag(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    path = tmp_path / "bare.engine"
    path.write_bytes(make_plan((10, 3, 0)))
    with pytest.raises(UsageError, match=r"TensorRT 10\.3\.0\.0 without a manifest") as info:
        trtdeploy.load(path)
    assert "allow_bare_engine=True" in info.value.hint
    assert not machine.was_deserialised()
    with trtdeploy.load(path, allow_bare_engine=True) as session:
        assert np.array_equal(session.run({"x": ramp(1, 3)})["y"], ramp(1, 3) * 2)
    assert machine.trt.calls.select("Runtime", "engine_host_code_allowed", "set") == []


def test_a_bare_engine_of_another_version(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.7.0"))
    path = tmp_path / "bare.engine"
    path.write_bytes(make_plan((10, 3, 0)))
    with pytest.raises(EngineMismatchError, match=r"10\.3\.0.*10\.7\.0"):
        trtdeploy.load(path, allow_bare_engine=True)
    assert not machine.was_deserialised()
    trtdeploy.load(path, allow_bare_engine=True, allow_host_code=True).close()


def test_metadata_of_ultralytics_is_cut_from_a_bare_engine(tmp_path: Path, use: Use) -> None:
    machine = use(make_machine("10.3.0"))
    plan = make_plan((10, 3, 0))
    path = tmp_path / "yolo.engine"
    path.write_bytes(b"\x02\0\0\0{}" + plan)
    trtdeploy.load(path, allow_bare_engine=True).close()
    (loaded,) = machine.trt.calls.select("Runtime", "deserialize_cuda_engine")
    assert loaded.args == (plan,)


def test_an_engine_inside_a_folder_is_loaded_as_the_folder(tmp_path: Path, use: Use) -> None:
    use(make_machine("10.3.0"))
    folder = Folder(tmp_path / "f").write()
    with pytest.raises(UsageError, match="engine of an output folder") as info:
        trtdeploy.load(folder.engine, allow_bare_engine=True)
    assert repr(str(folder.path)) in info.value.hint


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b"text", "neither an engine nor an ONNX file")]
)
def test_other_files(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "thing.engine"
    path.write_bytes(content)
    with pytest.raises(EngineFileError, match=said):
        trtdeploy.load(path)


def test_nothing_there_and_no_manifest(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        trtdeploy.load(tmp_path / "nothing")
    with pytest.raises(InputError, match=re.escape("manifest.json")):
        trtdeploy.load(tmp_path)


def test_an_onnx_file_is_the_baseline(tmp_path: Path) -> None:
    path = save_convnet(tmp_path / "net.onnx")
    with trtdeploy.load(str(path), options=SessionOptions(threads=1)) as session:
        assert session.device.startswith("CPU, ONNX Runtime")
        assert session.run({"images": np.zeros((1, 3, 64, 64), "f4")})["scores"].shape == (1, 5)
    with pytest.raises(UsageError, match="ONNX Runtime has no session option cuda_graph"):
        trtdeploy.load(path, options=SessionOptions(cuda_graph=True))
