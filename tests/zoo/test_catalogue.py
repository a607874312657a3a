"""zoo.yaml: what is refused, and that the shipped one is whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.zoo.wheels import describe_zoo, save_zoo, write_wheel
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.zoo.catalogue import find_model, load_zoo
from trtdeploy.zoo.entry import ZooInput

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def content(tmp_path: Path) -> dict[str, Any]:
    return describe_zoo(write_wheel(tmp_path))


def change_file(**changes: Any) -> Change:
    return lambda content: content["models"]["small"]["files"][0].update(changes)


@pytest.mark.parametrize("path", ["../up.onnx", "/etc/x.onnx", "a/../../b.onnx", "a//b.onnx",
                                  "..", "c:x.onnx", "a\\b.onnx", ""])  # fmt: skip
@pytest.mark.parametrize("key", ["path", "member"])
def test_a_path_never_leaves_its_folder(
    content: dict[str, Any], tmp_path: Path, key: str, path: str
) -> None:
    change_file(**{key: path})(content)
    with pytest.raises(InputError, match=rf"models\.small\.files\[0\]\.{key}"):
        save_zoo(tmp_path / "zoo.yaml", content)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (change_file(sha256="0" * 63), "sha256"),
        (change_file(bytes=0), "bytes"),
        (change_file(size=3), "unknown key"),
        (change_file(path="small.bin"), "onnx"),
        (lambda c: c["models"]["small"].update(wheel="gone"), "there is no wheel 'gone'"),
        (lambda c: c["models"]["small"].pop("licence"), "licence: this key is required"),
        (lambda c: c["models"]["small"].update(kind="torch"), "'torch' is not known"),
        (lambda c: c["models"]["folder"]["files"][0].update(path="other/x"), "one folder"),
        (lambda c: c["wheels"].update(spare=dict(c["wheels"]["fake"])), "nothing uses spare"),
        (lambda c: c["wheels"]["fake"].update(package="--index-url=x"), "package"),
        (lambda c: c["wheels"]["fake"].update(version="1.0 --pre"), "version"),
        (lambda c: c["wheels"]["fake"].update(file="../x.whl"), "file"),
        (lambda c: c["models"]["small"]["inputs"]["x"].update(dtype="float33"), "float33"),
        (lambda c: c["models"]["small"]["inputs"]["x"].update(multiples={"H": 32}), "'H'"),
        (lambda c: c["models"].update({"Big Name": c["models"]["small"]}), "Big Name"),
    ],
)
def test_what_is_wrong_is_named(
    content: dict[str, Any], tmp_path: Path, change: Change, words: str
) -> None:
    change(content)
    with pytest.raises(InputError, match=r"zoo\.yaml") as caught:
        save_zoo(tmp_path / "zoo.yaml", content)
    assert words in caught.value.message


def test_a_tag_is_no_plain_data(tmp_path: Path) -> None:
    path = tmp_path / "zoo.yaml"
    path.write_text("wheels: !!python/object/apply:os.system ['true']\n")
    with pytest.raises(InputError, match="tag"):
        load_zoo(path)


def test_unknown_model_is_suggested(content: dict[str, Any], tmp_path: Path) -> None:
    zoo = save_zoo(tmp_path / "zoo.yaml", content)
    with pytest.raises(UsageError, match="Did you mean 'small'"):
        find_model(zoo, "smal")


def test_input_label_says_what_is_taken() -> None:
    image = ZooInput(
        dtype="float32", shape=("N", 3, "H", "W"), means="images", multiples={"H": 32, "W": 32}
    )
    assert image.label == "float32 [N, 3, H, W], H and W multiples of 32"
    assert ZooInput(dtype="int64", shape=(), means="a rate").label == "int64"


def test_shipped_zoo_is_whole() -> None:
    zoo = load_zoo()
    assert set(zoo.models) == {
        "pp-ocrv6-det", "pp-ocrv6-rec", "ppocr-cls", "magika", "silero-vad", "silero-vad-16k",
        "all-minilm-l6-v2",
    }  # fmt: skip
    for model in zoo.models.values():
        assert model.hazards
        assert model.licence in {"Apache-2.0", "MIT"}
        assert all(i.dtype in {d.label for d in DType} for i in model.inputs.values())
    hashes = [file.sha256 for model in zoo.models.values() for file in model.files]
    assert len(set(hashes)) == len(hashes)
    detector = zoo.models["pp-ocrv6-det"]
    assert detector.images is not None
    assert detector.images.colour == "bgr"
    roots = [model.root for model in zoo.models.values()]
    assert len(set(roots)) == len(roots), "two models would overwrite each other"
