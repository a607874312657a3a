from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.environments import ROOT, Environment, InstallError, install, read_versions
from benchmarks.machine import describe_machine
from benchmarks.model_catalog import UnknownModelError, list_names, parse_shapes, provide


@pytest.mark.parametrize("script", ["convert.py", "build.py"])
def test_scripts_run_by_path_with_a_bare_python(script: str, tmp_path: Path) -> None:
    command = [sys.executable, "-S", str(ROOT / "benchmarks" / script)]
    done = subprocess.run([*command, "--help"], cwd=tmp_path, capture_output=True, check=True)
    assert b"--runs" in done.stdout
    wrong = subprocess.run(
        [*command, "--runs", "0"], cwd=tmp_path, capture_output=True, check=False
    )
    assert (wrong.returncode, wrong.stdout) == (2, b"")


def test_shapes_survive_colons_in_names() -> None:
    assert parse_shapes(["images:1x3x64x64", "a:0:2"]) == {"images": [1, 3, 64, 64], "a:0": [2]}
    with pytest.raises(ValueError, match="should look like"):
        parse_shapes(["images"])


def test_unknown_model_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match="yolov8n-like, resnet50, pp-ocrv6-det"):
        provide("resnet51", Path(sys.executable), tmp_path)
    assert {"yolov8n-like", "resnet50", "magika"} <= set(list_names())


def test_a_file_is_a_model(tmp_path: Path) -> None:
    path = tmp_path / "mine.onnx"
    path.write_bytes(b"x" * 2_500_000)
    assert provide(str(path), Path(sys.executable), tmp_path).label == "mine.onnx (2.5 MB)"


def test_environment_is_made_once_and_failure_shows_pip(tmp_path: Path) -> None:
    lines: list[str] = []
    missing = Environment("empty", (str(tmp_path / "missing"),), ())
    (tmp_path / "empty" / "bin").mkdir(parents=True)
    python = tmp_path / "empty" / "bin" / "python"
    python.write_text("#!/bin/sh\necho ERROR: no such requirement >&2\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(InstallError, match="ERROR: no such requirement"):
        install(missing, tmp_path, lines.append)
    python.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    assert install(missing, tmp_path, lines.append) == python
    assert install(missing, tmp_path, lines.append) == python
    assert len(lines) == 2


def test_versions_and_machine_are_described() -> None:
    versions = read_versions(Path(sys.executable), ["onnx", "no-such-package"])
    assert set(versions) == {"Python", "onnx"}
    machine = describe_machine()
    assert int(machine["cores"]) >= 1
    assert machine["memory"].endswith("GiB")
