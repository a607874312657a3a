"""Where a build writes, and the script that makes it again: both exactly as asked."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import trtdeploy
from tests.building.models import save_convnet
from trtdeploy.backends.installed import Environment
from trtdeploy.building.manifest import load_manifest
from trtdeploy.building.reproduce import render_reproduce_script
from trtdeploy.building.request import BuildRequest
from trtdeploy.config.shape_syntax import parse_shape_table
from trtdeploy.config.shape_table import AxisSizes, ShapeTable
from trtdeploy.core.errors import InputError
from trtdeploy.core.ranges import OptimizationProfile
from trtdeploy.report.document import SourceModel

TWO_PROFILES = """
extends: cpu-fp32
optimization_profiles:
  - {name: small, symbols: {batch: {min: 1, opt: 1, max: 2}}}
  - {name: large, symbols: {batch: {min: 4, opt: 8, max: 8}}}
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.yaml").write_text(TWO_PROFILES)
    np.savez(tmp_path / "data.npz", images=np.zeros((2, 3, 64, 64), np.float32))
    return save_convnet(tmp_path / "net.onnx")


def test_building_into_a_link_is_refused_before_any_work(model: Path, tmp_path: Path) -> None:
    folder = trtdeploy.build(model, "cpu-fp32", output_dir="real").folder
    (tmp_path / "latest").symlink_to("real")
    before = (folder / "manifest.json").read_bytes()
    for request in (
        BuildRequest(model, "cpu-fp32", output_dir=Path("latest"), rebuild=True),
        BuildRequest(Path("latest"), rebuild=True),
    ):
        events: list[object] = []
        with pytest.raises(InputError, match="latest is a symbolic link to real"):
            trtdeploy.build(request, progress=events.append)
        assert events == []
    assert (folder / "manifest.json").read_bytes() == before
    assert trtdeploy.build(Path("latest")).reused  # what only reads follows the link
    assert trtdeploy.build(BuildRequest(Path("latest"), output_dir=Path("real"))).reused is False


NET = Path("net.onnx")
REQUESTS: dict[str, BuildRequest] = {
    "several profiles, a symbol": BuildRequest(
        NET,
        "two.yaml",
        shapes=parse_shape_table(symbols=["batch=1:2:3"]),
        output_dir=Path("else where"),
        check_parity=False,
    ),
    "several profiles, an input": BuildRequest(
        NET,
        "two.yaml",
        shapes=parse_shape_table(["images:1x3x64x64:2x3x64x64:5x3x64x64"]),
        data=Path("data.npz"),
        pins=("relu", "op:Gemm"),
    ),
    "one profile": BuildRequest(
        NET, "cpu-fp32", shapes=parse_shape_table(symbols=["batch=3"]), check_parity=False
    ),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_the_script_makes_the_very_same_build(
    request_: BuildRequest, model: Path, tmp_path: Path
) -> None:
    """Its command comes to the folder that is there, and finds nothing to do."""
    first = trtdeploy.build(request_)
    program = tmp_path / "bin" / "trtdeploy"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trtdeploy "$@"\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", first.folder / "reproduce.sh", "--output", "json"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"reused": true' in done.stdout
    assert load_manifest(first.folder).key == first.manifest.key


SOURCE = SourceModel("net.onnx", "0" * 64, opset=17, ir_version=8, nodes=0, inputs=(), outputs=())
ENVIRONMENT = Environment("0", "3", "Linux", {})


def render(request: BuildRequest) -> str:
    profiles = tuple(OptimizationProfile(name, {}) for name in ("small", "large"))
    return render_reproduce_script(request, SOURCE, profiles, ENVIRONMENT)


def test_every_option_is_in_the_script() -> None:
    script = render(
        BuildRequest(
            Path("net.onnx"),
            "two.yaml",
            overrides=("build.refit=true",),
            shapes=parse_shape_table(symbols=["batch=1:2:3"], values=["size:8,8:20,33:64,64"]),
            calibration_data=(Path("/data/one.npz"), Path("calibration.json")),
            synthetic_calibration=True,
            prepare_only=True,
        )
    )
    words = shlex.split(script.splitlines()[-1])
    assert words[:5] == ["trtdeploy", "build", "./net.onnx", "--profile", "two.yaml"]
    for option, value in (
        ("--set", "build.refit=true"),
        ("--symbol", "batch=1:2:3"),
        ("--value", "size:8,8:20,33:64,64"),
        ("--calib", "one.npz"),
    ):
        assert words[words.index(option) + 1] == value
    assert words.count("--calib") == 2
    assert {"--synthetic-calib", "--prepare-only"} <= set(words)


def test_what_no_option_can_say_is_said_in_words() -> None:
    partial = ShapeTable(symbols={"batch": AxisSizes(max=8)})
    script = render(BuildRequest(Path("net.onnx"), "two.yaml", shapes=partial))
    assert "# Left out, because only Python can say it: sizes of batch" in script
    assert "--symbol" not in script
