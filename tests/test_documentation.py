"""Fenced ``console`` blocks of the README run, in order, in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.models import save_convnet
from trtdeploy.backends.installed import is_installed
from trtdeploy.cli.main import run

README = Path(__file__).resolve().parents[1] / "README.md"


def read_commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.skipif(not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed")
def test_commands_of_the_readme_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_convnet(tmp_path / "yolov8n.onnx")
    images = np.random.default_rng(0).normal(0, 1, (8, 3, 64, 64)).astype(np.float32)
    np.savez(tmp_path / "images.npz", images=images)
    monkeypatch.chdir(tmp_path)
    commands = read_commands()
    assert len(commands) >= 8
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "trtdeploy"
        assert run(words[1:]) == 0, command
