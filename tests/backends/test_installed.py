"""What is installed is told without importing it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trtdeploy.backends.installed import InstalledPackage, find_installed, is_installed


def make_module(folder: Path, name: str, distribution: str = "", version: str = "") -> None:
    (folder / f"{name}.py").write_text("raise SystemExit('imported')")
    if distribution:
        info = folder / f"{distribution}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: {version}\n")


def test_a_package_with_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pycuda", raising=False)
    make_module(tmp_path, "pycuda", "pycuda", "2099.1")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_installed("pycuda") == InstalledPackage("pycuda", "2099.1")
    assert is_installed("pycuda")
    assert "pycuda" not in sys.modules


def test_a_package_under_another_distribution(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path, "tensorrt", "tensorrt_cu13", "99.1.2.3")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_installed("tensorrt").version == "99.1.2.3"


def test_a_system_package_without_metadata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_module(tmp_path, "made_by_jetpack")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_installed("made_by_jetpack").version == "unknown"
    assert is_installed("made_by_jetpack")


def test_an_absent_package() -> None:
    assert find_installed("no_such_module") == InstalledPackage("no_such_module", None)
    assert not is_installed("no_such_module")


def test_the_real_tensorrt_rtx() -> None:
    trt = pytest.importorskip("tensorrt_rtx")
    assert find_installed("tensorrt_rtx").version == trt.__version__
