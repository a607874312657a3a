"""The ``preprocessing:`` section: what it accepts, and how mistakes are explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from trtdeploy.config.loading import ResolvedProfile, load_deploy_profile
from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.errors import DeployProfileError

HEAD = "extends: orin-fp16\n"


def load(folder: Path, text: str, *overrides: str) -> PreprocessingSection | None:
    path = folder / "mine.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load_deploy_profile(str(path), overrides).profile.preprocessing


def test_profiles_say_nothing_by_default() -> None:
    assert load_deploy_profile("orin-fp16").profile.preprocessing is None


def test_everything_can_be_said(tmp_path: Path) -> None:
    section = load(
        tmp_path,
        "preprocessing:\n"
        "  size: [224, 320]\n  layout: nhwc\n  colour: bgr\n  scale: 1\n"
        "  mean: [123.675, 116.28, 103.53]\n  std: [58.395, 57.12, 57.375]\n"
        "  resize: letterbox\n  pad: 0\n  interpolation: bicubic\n",
    )
    assert section == PreprocessingSection(
        size=(224, 320),
        layout="nhwc",
        colour="bgr",
        scale=1.0,
        mean=(123.675, 116.28, 103.53),
        std=(58.395, 57.12, 57.375),
        resize="letterbox",
        pad=0,
        interpolation="bicubic",
    )


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("{}", "scale", 1 / 255),
        ("{size: from shape}", "size", None),
        ("{size: 640}", "size", (640, 640)),
        ("{scale: 1/255}", "scale", 1 / 255),
        ("{scale: 2 / 255}", "scale", 2 / 255),
        ("{scale: 1}", "scale", 1.0),
        ("{mean: 0.5}", "mean", (0.5,)),
        ("{std: [1, 2, 3]}", "std", (1.0, 2.0, 3.0)),
        ("{colour: gray, mean: [0.5]}", "mean", (0.5,)),
    ],
)
def test_short_spellings(tmp_path: Path, text: str, field: str, value: object) -> None:
    assert getattr(load(tmp_path, f"preprocessing: {text}\n"), field) == value


def test_overrides_reach_it(tmp_path: Path) -> None:
    section = load(tmp_path, "preprocessing: {size: 64}\n", "preprocessing.size=from shape")
    assert section is not None
    assert section.size is None
    assert load(tmp_path, "preprocessing: {size: 64}\n", "preprocessing=null") is None


@pytest.mark.parametrize("size", ["from shape", "[8, 9]"])
def test_manifest_round_trip(tmp_path: Path, size: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{HEAD}preprocessing: {{size: {size}}}\n", encoding="utf-8")
    resolved = load_deploy_profile(str(path))
    kind = TypeAdapter(ResolvedProfile)
    text = kind.dump_json(resolved)
    data = json.loads(text)
    assert data["profile"]["preprocessing"]["size"] == ([8, 9] if size[0] == "[" else size)
    assert kind.validate_json(text) == resolved


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{sice: 3}", "preprocessing.sice: unknown key. Did you mean 'size'?"),
        ("{size: large}", "preprocessing.size: expected [height, width], one number for both"),
        ("{size: [0, 3]}", "preprocessing.size[0]: "),
        ("{size: [3]}", "preprocessing.size[1]: "),
        ("{layout: nchv}", "preprocessing.layout: 'nchv' is not known. Did you mean 'nchw'?"),
        ("{colour: grey}", "preprocessing.colour: 'grey' is not known. Did you mean 'gray'?"),
        ("{scale: 0}", "preprocessing.scale: "),
        ("{scale: 1/0}", "preprocessing.scale: expected a number or a fraction like 1/255"),
        ("{scale: tiny}", "preprocessing.scale: expected a number or a fraction like 1/255"),
        ("{std: [1, 0, 1]}", "preprocessing.std[1]: "),
        ("{mean: [1, 2]}", "preprocessing: mean has 2 values; expected 1 or 3"),
        ("{colour: gray, std: [1, 2, 3]}", "std has 3 values; expected 1 with colour 'gray'"),
        ("{pad: 256}", "preprocessing.pad: "),
        ("{resize: crop}", "preprocessing.resize: 'crop' is not known."),
        ("{interpolation: linear}", "Did you mean 'bilinear'?"),
        ("[1]", "preprocessing: expected 'key: value' lines"),
    ],
)
def test_mistakes_are_explained(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(DeployProfileError) as caught:
        load(tmp_path, f"preprocessing: {text}\n")
    assert expected in caught.value.message
