"""A damaged manifest is one error that names file and field, whichever command reads it."""

from __future__ import annotations

import copy
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import trtdeploy
from tests.building.models import save_convnet
from trtdeploy.building.manifest import load_manifest
from trtdeploy.building.request import BuildRequest
from trtdeploy.core.errors import InputError

Place = tuple[str | int, ...]
DELETED = object()
JUNK: tuple[Any, ...] = (
    DELETED, None, 7, -1, 1.5, True, "junk", "../x", [], {}, [{}], {"a": 1}, [-3], [[]],
)  # fmt: skip


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("built")
    save_convnet(place / "net.onnx")
    return trtdeploy.build(place / "net.onnx", "cpu-fp32", output_dir=place / "out").folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    shutil.copy(built.parent / "net.onnx", tmp_path)
    return Path(shutil.copytree(built, tmp_path / "out"))


def list_places(value: Any, place: Place = ()) -> Iterator[Place]:
    for key, entry in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*place, key)
        if isinstance(entry, dict | list):
            yield from list_places(entry, (*place, key))


def damage(manifest: Any, place: Place, junk: Any) -> Any:
    damaged = copy.deepcopy(manifest)
    around = damaged
    for key in place[:-1]:
        around = around[key]
    if junk is DELETED:
        del around[place[-1]]
    else:
        around[place[-1]] = junk
    return damaged


def save(folder: Path, manifest: Any) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest))


def load_and_close(folder: Path) -> None:
    trtdeploy.load(folder).close()


def compile_again(folder: Path) -> None:
    kept = (folder / "manifest.json").read_text()
    trtdeploy.build(BuildRequest(folder, rebuild=True, check_parity=False))
    (folder / "manifest.json").write_text(kept)


USES: dict[str, tuple[Callable[[Path], object], int]] = {
    "read": (load_manifest, 800),
    "inspect": (trtdeploy.inspect, 300),
    "load": (load_and_close, 150),
    "build": (compile_again, 150),
    "parity": (lambda f: trtdeploy.check_parity(f, f.parent / "net.onnx"), 60),
}


@pytest.mark.parametrize(("use", "count"), USES.values(), ids=USES)
def test_no_damage_is_a_crash(use: Callable[[Path], object], count: int, folder: Path) -> None:
    """Samples of every field times every junk: what is not refused must not have mattered."""
    manifest = json.loads((folder / "manifest.json").read_text())
    cases = [(place, junk) for place in list_places(manifest) for junk in JUNK]
    refused = []
    for place, junk in random.Random(1).sample(cases, count):
        save(folder, damage(manifest, place, junk))
        try:
            use(folder)
        except InputError as error:
            refused.append((place, junk, error.message))
    assert len(refused) > count / 2
    assert [case for case in refused if "manifest.json" not in case[2]] == []


REFUSED: dict[str, tuple[str, Any, str]] = {
    "missing section": ("precision", DELETED, "precision: Field required"),
    "missing field": ("typed_model.bytes", DELETED, "typed_model.bytes: Field required"),
    "list entry": ("source.inputs.0.name", 7, "source.inputs.0.name: Input should be"),
    "deep": (
        "precision.nodes.conv.dtype", None, "precision.nodes.conv.dtype: Input should be"
    ),
    "climbing": ("typed_model.file", "../net.onnx", "typed_model.file: names a file '../net.onnx'"),
    "windows": ("engine.file", "..\\x", "that is not in its folder"),
    "unlisted": ("typed_model.sha256", "0" * 64, "typed_model: lists no SHA-256 of 'model.onnx'"),
    "status": ("status", "prepared", "engine: the status is 'prepared', which does not fit"),
    "unknown status": ("status", "done", "status: Input should be 'engine' or 'prepared'"),
    "no sizes": ("optimization_profiles", [], "optimization_profiles: there is none"),
    "order": (
        "optimization_profiles.0.shapes.images.max", [0, 3, 64, 64],
        "optimization_profiles.0.shapes: 'images': min, opt and max are not in this order",
    ),
    "rank": (
        "optimization_profiles.0.shapes.images.max", [8, 3, 64], "different lengths"
    ),
    "negative": (
        "optimization_profiles.0.shapes.images.min", [-1, 3, 64, 64], "a size is negative"
    ),
    "other inputs": (
        "source.inputs.0.name", "x", "is for ['images'], and the inputs are ['x']"
    ),
    "other rank": (
        "source.inputs.0.shape", [1], "'images' has 4 sizes, and the input 1"
    ),
    "parity": ("parity.is_synthetic", 1, "parity.is_synthetic: Input should be a valid boolean"),
    "recipe": ("precision.recipe", 16, "precision.recipe: Input should be a valid string"),
    "profile key": (
        "profile.profile.build.workspce", 1, "profile.profile.build.workspce: Extra inputs are not"
    ),
    "device": ("profile.device.kind", DELETED, "profile.device.kind: Field required"),
    "no profile": ("profile.profile", DELETED, "profile.profile: Field required"),
}  # fmt: skip


@pytest.mark.parametrize(("where", "junk", "said"), REFUSED.values(), ids=REFUSED)
def test_the_error_names_file_and_field(where: str, junk: Any, said: str, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    place = tuple(int(key) if key.isdecimal() else key for key in where.split("."))
    save(folder, damage(manifest, place, junk))
    with pytest.raises(InputError) as info:
        trtdeploy.inspect(folder)
    assert str(info.value).startswith(f"{folder / 'manifest.json'} is damaged: ")
    assert said in str(info.value)
    assert "build it again" in info.value.hint


def test_a_recipe_that_the_model_was_not_typed_for(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    save(folder, damage(manifest, ("profile", "profile", "recipe"), "fp16"))
    with pytest.raises(InputError, match=r"profile\.recipe is fp16, and the model .*: fp32"):
        trtdeploy.build(folder)


def test_keys_of_a_later_version_are_left_alone(folder: Path) -> None:
    before = load_manifest(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["typed_model"]["added_later"] = manifest["added_later"] = {"a": 1}
    save(folder, manifest)
    assert load_manifest(folder) == before


def test_a_key_that_is_there_twice_is_checked_as_it_is_read(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(text.rstrip()[:-1] + ', "status": 7}')
    with pytest.raises(InputError, match="status: Input should be"):
        load_manifest(folder)


EARLIER: dict[str, tuple[dict[str, Any], str]] = {
    "plain": (
        {"source": {"file": "my net.onnx"}, "profile": {"profile": {"name": "orin-fp16"}}},
        "trtdeploy build 'my net.onnx' --profile orin-fp16 --output-dir",
    ),
    "quoted": (
        {"source": {"file": "$(reboot).onnx"}, "profile": {"profile": {"name": "a;b"}}},
        "trtdeploy build '$(reboot).onnx' --profile 'a;b' --output-dir",
    ),
    "unsafe": (
        {"source": {"file": "--set"}, "profile": {"profile": {"name": "a\x1b[31m"}}},
        "trtdeploy build MODEL.onnx --profile NAME --output-dir",
    ),
    "unreadable": ({"source": 7, "profile": []}, "trtdeploy build MODEL.onnx --profile NAME"),
}


@pytest.mark.parametrize(("sections", "command"), EARLIER.values(), ids=EARLIER)
def test_a_folder_of_an_earlier_version_is_built_again(
    sections: dict[str, Any], command: str, folder: Path
) -> None:
    save(folder, {"schema_version": 1, **sections})
    with pytest.raises(
        InputError, match="by an earlier trtdeploy: it has schema version 1"
    ) as info:
        load_manifest(folder)
    assert command in info.value.hint
    assert info.value.hint.endswith("--rebuild")
    assert info.value.hint.isprintable()


def test_a_manifest_is_read_into_what_it_was_written_from(folder: Path) -> None:
    result = trtdeploy.build(folder.parent / "net.onnx", "cpu-fp32", output_dir=folder.parent / "b")
    assert load_manifest(result.folder) == result.manifest
    report = json.loads((result.folder / "report.json").read_text())
    whole = json.loads((result.folder / "manifest.json").read_text())
    assert report.items() <= whole.items()
    assert set(whole) - set(report) == {"key", "pins", "data"}


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")
    with pytest.raises(InputError, match="not a plain file"):
        load_manifest(folder)
