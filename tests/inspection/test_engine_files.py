"""An engine where an ONNX file belongs is called an engine, by every command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import trtdeploy
from tests.building.models import save_convnet
from tests.runtime.folders import Folder, make_plan
from trtdeploy.core.errors import ModelFileError

PLAN = make_plan((10, 3, 0, 30))
ENGINES = {
    "plain": (PLAN, "TensorRT 10.3.0.30, compiled already"),
    "rtx": (make_plan((1, 7, 1, 116), b"vtrt"), "TensorRT-RTX 1.7.1.116"),
    "ultralytics": (b"\x02\0\0\0{}" + PLAN, "10.3.0.30 behind the metadata of Ultralytics"),
}
USES: dict[str, Callable[[Path, Path], object]] = {
    "build": lambda engine, _: trtdeploy.build(engine, "orin-fp16"),
    "check": lambda engine, _: trtdeploy.check(engine, "orin-fp16"),
    "parity": trtdeploy.check_parity,
    "parity with a profile": lambda e, m: trtdeploy.check_parity(e, m, profile="orin-fp16"),
    "reference": lambda engine, model: trtdeploy.check_parity(model, engine, profile="orin-fp16"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
@pytest.mark.parametrize(("content", "said"), ENGINES.values(), ids=ENGINES)
@pytest.mark.parametrize("name", ["net.engine", "net.onnx"])
def test_an_engine_is_no_model(
    content: bytes, said: str, use: Callable[[Path, Path], object], name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelFileError) as info:
        use(tmp_path / name, save_convnet(tmp_path / "fp32.onnx"))
    assert f"{name} is an engine of" in str(info.value)
    assert said in str(info.value)
    assert f"trtdeploy inspect {tmp_path / name}" in info.value.hint
    assert "trtdeploy.load" in info.value.hint


def test_an_engine_of_a_folder_leads_to_the_folder(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "net.l4-fp16").write()
    with pytest.raises(ModelFileError) as info:
        trtdeploy.check_parity(folder.engine, save_convnet(tmp_path / "fp32.onnx"))
    assert f"the output folder {folder.path}" in info.value.hint


def test_whatever_else_it_is_is_said_by_who_reads_it(tmp_path: Path) -> None:
    (tmp_path / "a.engine").write_bytes(b"hello")
    with pytest.raises(ModelFileError, match="is not an ONNX model"):
        trtdeploy.build(tmp_path / "a.engine", "orin-fp16")
    with pytest.raises(ModelFileError, match="cannot be read"):
        trtdeploy.build(tmp_path / "nothing.engine", "orin-fp16")
