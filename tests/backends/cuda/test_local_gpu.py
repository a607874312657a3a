"""The GPU of this machine is asked of the driver's tools and of the device tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.backends.cuda.local_gpu import LocalGpu, find_local_gpu

NO_TREE = Path("/nonexistent/device-tree")


def fake_nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("echo 'NVIDIA GeForce RTX 4090, 8.9'", LocalGpu("NVIDIA GeForce RTX 4090", "8.9")),
        ("echo 'A, B, 12.0'; echo 'C, 9.0'", LocalGpu("A, B", "12.0")),
        ("echo 'NVIDIA Tegra, [N/A]'", None),
        ("echo 'No devices were found'", None),
        ("true", None),
        ("exit 9", None),
    ],
)
def test_answers_of_nvidia_smi(
    script: str, found: LocalGpu | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_nvidia_smi(tmp_path, monkeypatch, script)
    assert find_local_gpu(NO_TREE) == found


def test_no_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_local_gpu(NO_TREE) is None


@pytest.mark.parametrize(
    ("board", "chip", "found"),
    [
        ("p3768-0000+p3767-0005", "nvidia,tegra234", LocalGpu("Jetson Orin Nano 8 GB", "8.7")),
        ("p3737-0000+p3701-0005", "nvidia,tegra234", LocalGpu("Jetson AGX Orin 64 GB", "8.7")),
        ("p9999-0000", "nvidia,tegra234", LocalGpu("Jetson Orin", "8.7")),
        ("p3971-0050+p3834-0008", "nvidia,tegra264", LocalGpu("Jetson Thor T5000", "11.0")),
        ("", "raspberrypi,5-model-b", None),
    ],
)
def test_device_trees(
    board: str, chip: str, found: LocalGpu | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    tree = tmp_path / "compatible"
    tree.write_bytes(f"nvidia,{board}\0{chip}\0".encode())
    assert find_local_gpu(tree) == found
