"""SOURCE as typed, and what happens where the framework is not installed."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from trtdeploy.core.errors import InputError, MissingDependencyError, UsageError
from trtdeploy.export.exporting import export_model
from trtdeploy.export.request import ExportRequest
from trtdeploy.export.sources import parse_source


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("model.onnx", "onnx", "model.onnx"),
        ("torchvision:resnet50", "torchvision", "resnet50"),
        ("timm:vit_tiny_patch16_224.augreg", "timm", "vit_tiny_patch16_224.augreg"),
        ("transformers:./minilm", "transformers", "./minilm"),
        ("ultralytics:best.pt", "ultralytics", "best.pt"),
        ("yolov8n.yaml", "ultralytics", "yolov8n.yaml"),
        ("yolov8n.pt", "ultralytics", "yolov8n.pt"),
        ("package.net:Net", "callable", "package.net:Net"),
        ("some/net.py:make.it", "callable", "some/net.py:make.it"),
    ],
)
def test_sources_are_recognised(text: str, kind: str, name: str) -> None:
    assert parse_source(text) == (kind, name)


@pytest.mark.parametrize("text", ["resnet50", "torchvison:resnet50x:y", "a b:c", "net.py:", ":x"])
def test_what_is_no_source_lists_the_forms(text: str) -> None:
    with pytest.raises(UsageError, match="module:callable"):
        parse_source(text)


def test_a_prefix_alone_lacks_its_name() -> None:
    with pytest.raises(UsageError, match="a name is missing") as caught:
        parse_source("timm:")
    assert "timm:vit_tiny" in caught.value.hint


def make_archive(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return path


def test_checkpoints_are_told_apart_without_loading_them(tmp_path: Path) -> None:
    script = make_archive(tmp_path / "a.pt", {"a/code/__torch__.py": b"", "a/data.pkl": b""})
    pickled = b"\x80\x02cultralytics.nn.tasks\nDetectionModel\n"
    detector = make_archive(tmp_path / "best.pt", {"best/data.pkl": pickled})
    weights = make_archive(tmp_path / "w.pt", {"w/data.pkl": b"ccollections\nOrderedDict\n"})
    assert parse_source(str(script))[0] == "torchscript"
    assert parse_source(str(detector))[0] == "ultralytics"
    with pytest.raises(InputError, match="weights without the model") as caught:
        parse_source(str(weights))
    assert "--weights" in caught.value.hint
    (tmp_path / "text.pt").write_text("hello")
    with pytest.raises(InputError, match="no file of PyTorch"):
        parse_source(str(tmp_path / "text.pt"))


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_damaged_or_encrypted_archive_is_an_error(tmp_path: Path, encrypted: bool) -> None:
    path = tmp_path / "w.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w/data.pkl", bytes(range(256)) * 40)
    content = bytearray(path.read_bytes())
    if encrypted:
        content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the directory
        content[6] |= 1
    else:
        start = 30 + len("w/data.pkl")
        content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or encrypted"):
        parse_source(str(path))


@pytest.mark.parametrize("text", ["missing.pt2", "missing.pt", "missing.pth"])
def test_a_missing_file_is_said_to_be_missing(text: str) -> None:
    with pytest.raises(InputError, match="does not exist"):
        parse_source(text)


@pytest.mark.parametrize("source", ["torchvision:resnet50", "net:make", "yolov8n.yaml"])
def test_without_torch_the_error_says_what_to_install(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependencyError, match="torch is needed") as caught:
        export_model(ExportRequest(source, tmp_path / "x.onnx"))
    assert "trtdeploy[export]" in caught.value.hint
    assert list(tmp_path.iterdir()) == []
