"""Folders of images: upright, in the right colours and sizes, and named when they are broken."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError, MissingDependencyError
from trtdeploy.core.tensors import Shape, TensorSpec
from trtdeploy.samples.opening import open_samples

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

RED = (200, 10, 20)
RAW = PreprocessingSection(scale=1.0)


def spec(shape: Shape = ("N", 3, "H", "W"), dtype: DType = DType.FLOAT32) -> TensorSpec:
    return TensorSpec("x", dtype, shape)


def draw(path: Path, size: tuple[int, int] = (6, 4), colour: Any = RED, mode: str = "RGB") -> Any:
    """Save an image of width x height in one colour, with its left column white."""
    image = Image.new(mode, size, colour)
    white = 255 if isinstance(colour, int) else tuple(255 for _ in colour)
    for row in range(size[1]):
        image.putpixel((0, row), white)
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path)
    return image


def read(
    path: Path, section: PreprocessingSection | None, input_spec: TensorSpec, *shape: int
) -> Any:
    source = open_samples(path, [input_spec], section)
    return next(source.iterate_batches({"x": shape})).feeds["x"]


@pytest.mark.parametrize("suffix", ["png", "bmp", "webp", "jpg", "jpeg", "PNG"])
def test_formats(tmp_path: Path, suffix: str) -> None:
    Image.new("RGB", (6, 4), RED).save(tmp_path / f"a.{suffix}")
    found = read(tmp_path, RAW, spec(), 1, 3, 4, 6)
    assert (found.shape, found.dtype) == ((1, 3, 4, 6), np.float32)
    np.testing.assert_allclose(found[0, :, 2, 3], RED, atol=4)


def test_files_of_a_tree_come_in_order(tmp_path: Path) -> None:
    for number, name in enumerate(["b/2.png", "a/1.png", "c/3.png"]):
        draw(tmp_path / name, colour=(number, number, number))
    source = open_samples(tmp_path, [spec()], RAW)
    batches = list(source.iterate_batches({"x": (2, 3, 4, 6)}))
    assert len(source) == 3
    assert source.description == f"{tmp_path} (3 images)"
    assert [b.feeds["x"][:, 0, 0, 5].tolist() for b in batches] == [[1, 0], [2]]
    assert [i.file.name for b in batches for i in b.samples] == ["1.png", "2.png", "3.png"]


def test_without_a_section_the_assumption_is_noted(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    source = open_samples(tmp_path / "a.png", [spec()])
    assert "rgb pixels times 1/255, stretched" in source.notes[0]
    feeds = next(source.iterate_batches({"x": (1, 3, 4, 6)})).feeds
    np.testing.assert_allclose(feeds["x"][0, :, 0, 5], np.array(RED) / 255, rtol=1e-6)


def test_mean_and_std_are_in_colour_order(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    section = PreprocessingSection(scale=1, colour="bgr", mean=[10, 20, 30], std=[1, 2, 4])
    found = read(tmp_path, section, spec(), 1, 3, 4, 6)[0, :, 0, 5]
    np.testing.assert_allclose(found, [(20 - 10) / 1, (10 - 20) / 2, (200 - 30) / 4])


def test_layouts_and_gray(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    nhwc = read(tmp_path, RAW, spec(("N", "H", "W", 3)), 1, 4, 6, 3)
    np.testing.assert_allclose(nhwc[0, 0, 5], RED)
    gray = read(tmp_path, RAW, spec(("N", 1, "H", "W")), 1, 1, 4, 6)
    np.testing.assert_allclose(gray[0, 0, 0, 5], 68, atol=1)  # ITU-R 601: .299 R .587 G .114 B
    named = PreprocessingSection(scale=1, layout="nchw")
    assert read(tmp_path, named, spec(("N", "C", "H", "W")), 1, 3, 4, 6).shape == (1, 3, 4, 6)
    single = read(tmp_path, RAW, spec((3, "H", "W")), 3, 4, 6)
    assert single.shape == (3, 4, 6)


def test_uint8_input_takes_pixels_as_they_are(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    found = read(tmp_path, None, spec(("N", 4, 6, 3), DType.UINT8), 1, 4, 6, 3)
    assert found.dtype == np.uint8
    assert tuple(found[0, 0, 5]) == RED


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    image = draw(tmp_path / "plain.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # "rotate 90 degrees clockwise to view"
    image.save(tmp_path / "turned.png", exif=exif)
    (tmp_path / "plain.png").unlink()
    found = read(tmp_path, RAW, spec(), 1, 3, 6, 4)
    assert (found[0, :, 0, :] == 255).all()  # the left column is now the top row
    np.testing.assert_allclose(found[0, :, 5, 0], RED)


def test_letterbox_keeps_the_aspect_and_pads(tmp_path: Path) -> None:
    Image.new("RGB", (8, 4), RED).save(tmp_path / "a.png")
    section = PreprocessingSection(scale=1, resize="letterbox", pad=7, interpolation="nearest")
    found = read(tmp_path, section, spec(), 1, 3, 16, 16)[0]
    assert (found[:, :4] == 7).all()
    assert (found[:, 12:] == 7).all()
    np.testing.assert_array_equal(
        found[:, 4:12], np.broadcast_to(np.array(RED)[:, None, None], (3, 8, 16))
    )
    stretched = read(tmp_path, RAW, spec(), 1, 3, 16, 16)[0]
    np.testing.assert_allclose(stretched[:, 0, 0], RED)


def test_own_size_wins_over_the_wanted_shape(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    section = PreprocessingSection(size=[5, 7])
    assert read(tmp_path, section, spec(), 1, 3, 320, 320).shape == (1, 3, 5, 7)


def test_fixed_batch_is_filled_up(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    source = open_samples(tmp_path, [spec((2, 3, 4, 6))], RAW)
    (batch,) = source.iterate_batches({"x": (2, 3, 4, 6)})
    assert (batch.feeds["x"].shape, batch.padding) == ((2, 3, 4, 6), 1)


@pytest.mark.parametrize(
    ("section", "shape", "dtype", "expected"),
    [
        ({"size": [5, 6]}, ("N", 3, 4, 6), DType.FLOAT32, "size: given height 5, expected 4"),
        ({"colour": "gray"}, ("N", 3, 4, 6), DType.FLOAT32, "colour: given gray, expected 3"),
        ({"colour": "bgr"}, ("N", 1, 4, 6), DType.FLOAT32, "colour: given bgr, expected 1"),
        ({"mean": [1, 2, 3]}, ("N", 1, 4, 6), DType.FLOAT32, "mean: given 3 values, expected 1"),
        ({"std": 2.0}, ("N", 3, 4, 6), DType.UINT8, "mean and std: given for uint8 pixels"),
        ({"layout": "nhwc"}, ("N", 3, 4, 6), DType.FLOAT32, "say where the channels are"),
        ({}, ("N", 3, 4, 6), DType.INT64, "float or uint8 image"),
        ({}, ("N", 8), DType.FLOAT32, "the model takes 'x' float32 Nx8"),
    ],
)
def test_section_and_model_must_agree(
    tmp_path: Path, section: dict[str, Any], shape: Shape, dtype: DType, expected: str
) -> None:
    draw(tmp_path / "a.png")
    with pytest.raises(InputError) as caught:
        open_samples(tmp_path, [spec(shape, dtype)], PreprocessingSection(**section))
    assert expected in f"{caught.value.message} {caught.value.hint}"


def test_model_with_more_inputs_needs_arrays(tmp_path: Path) -> None:
    draw(tmp_path / "a.png")
    with pytest.raises(InputError, match="'ids' int64 1") as caught:
        open_samples(tmp_path, [spec(), TensorSpec("ids", DType.INT64, (1,))])
    assert ".npz" in caught.value.hint


def test_broken_images_are_named_together(tmp_path: Path) -> None:
    draw(tmp_path / "good.png")
    (tmp_path / "empty.png").write_bytes(b"")
    (tmp_path / "text.jpg").write_text("no image")
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(InputError) as caught:
        open_samples(tmp_path, [spec()])
    for name in ("empty.png", "text.jpg", "deep.png: given pixels of mode 'I;16'"):
        assert name in caught.value.message
    assert "good.png" not in caught.value.message


def test_postscript_under_another_name_starts_no_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, folder = tmp_path / "bin" / "gs", tmp_path / "samples"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho ran > '{tmp_path}/ran'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    draw(folder / "good.png")
    Image.new("RGB", (6, 4), RED).save(folder / "b.png", format="EPS")
    with pytest.raises(InputError) as caught:
        read(folder, RAW, spec(), 2, 3, 4, 6)
    assert not (tmp_path / "ran").exists()
    assert f"{folder / 'b.png'} cannot be read as an image" in caught.value.message
    assert "none of JPEG, PNG, BMP, WEBP" in caught.value.message
    assert "good.png" not in caught.value.message


def test_image_that_ends_early_is_named(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(noise).save(tmp_path / "cut.png")
    data = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(data[: len(data) // 2])
    source = open_samples(tmp_path, [spec()])
    with pytest.raises(InputError, match=r"cut\.png cannot be read as an image"):
        list(source.iterate_batches({"x": (1, 3, 8, 8)}))


def test_without_pillow_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError) as caught:
        open_samples(tmp_path, [spec()])
    assert caught.value.hint == "Install it with: pip install pillow"
