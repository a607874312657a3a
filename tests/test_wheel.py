"""The wheel carries what an installed trtdeploy needs, the source package what its tests need."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def build(kind: str, folder: Path) -> Path:
    # The build backend is in the dev extra: no isolation, hence no network.
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir"]
    done = subprocess.run(
        [*command, str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1767225600"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (package,) = folder.iterdir()
    return package


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        return set(archive.namelist())


def test_wheel_carries_the_package_and_the_profiles(wheel_names: set[str]) -> None:
    package = [p for p in (ROOT / "trtdeploy").rglob("*") if p.is_file() and p.suffix != ".pyc"]
    profiles = (ROOT / "profiles").rglob("*.yaml")
    expected = {path.relative_to(ROOT).as_posix() for path in package}
    expected |= {f"trtdeploy/profiles_data/{p.relative_to(ROOT / 'profiles')}" for p in profiles}
    assert "trtdeploy/profiles_data/rtx4090-fp16.yaml" in expected
    expected.add("trtdeploy/zoo_data/zoo.yaml")
    assert not expected - wheel_names


def test_wheel_carries_nothing_else(wheel_names: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names} <= {
        "trtdeploy",
        "trtdeploy-0.1.0.dist-info",
    }
    assert not [name for name in wheel_names if name.endswith((".pyc", ".onnx", ".engine"))]


def test_source_package_is_whole(tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "Makefile", "pyproject.toml", "models/zoo.yaml"} <= names
    assert {"tests/conftest.py", "profiles/rtx4090-fp16.yaml"} <= names
    assert not [name for name in names if name.startswith((".venv", "build/", "models/downloads"))]
