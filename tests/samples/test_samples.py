"""Sample inputs from array files: batches, axes, types, and one error for all that is wrong."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.config.preprocessing import PreprocessingSection
from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import InputError, UsageError
from trtdeploy.core.tensors import TensorSpec
from trtdeploy.samples.opening import open_samples
from trtdeploy.samples.source import Batch, SampleSource

F32, I64, BOOL, U8 = DType.FLOAT32, DType.INT64, DType.BOOL, DType.UINT8

IMAGE = (TensorSpec("x", F32, ("N", 3, 4, 4)),)
TOKENS = (TensorSpec("ids", I64, ("batch", "seq")), TensorSpec("mask", I64, ("batch", "seq")))
TIED = (
    TensorSpec("tokens", F32, ("B", "S", 2)),
    TensorSpec("pos", F32, ("S", 2)),
    TensorSpec("mask", DType.INT32, ("B", "S")),
)
VOICE = (
    TensorSpec("input", F32, ("batch", "time")),
    TensorSpec("state", F32, (2, "batch", 3)),
    TensorSpec("sr", I64, ()),
)
FIXED = (TensorSpec("x", F32, (4, 3, 2, 2)),)
SIZED = (TensorSpec("x", F32, (1, 3, "H", "W")), TensorSpec("out_size", I64, (2,)))


def get_shapes(batch: Batch) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in batch.feeds.items()}


def ramp(*shape: int, dtype: Any = np.float32) -> Any:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


def shapes_of(inputs: Sequence[TensorSpec], batch: int = 4) -> dict[str, tuple[int, ...]]:
    """Fill every symbol with the batch size; other sizes come from the data."""
    return {
        s.name: tuple(batch if isinstance(d, str) else d for d in s.shape or ()) for s in inputs
    }


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def stack(source: SampleSource, shapes: Mapping[str, tuple[int, ...]], name: str, axis: int) -> Any:
    return np.concatenate([b.feeds[name] for b in source.iterate_batches(shapes)], axis)


def test_partial_last_batch_is_used(tmp_path: Path) -> None:
    data = ramp(70, 3, 4, 4)
    source = open_samples(save(tmp_path / "c.npz", x=data), IMAGE)
    batches = list(source.iterate_batches(shapes_of(IMAGE, 16)))
    assert len(source) == 70
    assert [batch.feeds["x"].shape[0] for batch in batches] == [16, 16, 16, 16, 6]
    np.testing.assert_array_equal(np.concatenate([b.feeds["x"] for b in batches]), data)
    assert [str(i) for i in batches[4].samples[-1:]] == [f"{tmp_path / 'c.npz'}, sample 69"]
    assert source.description == f"{tmp_path / 'c.npz'} (70 samples)"
    assert source.notes == ()


def test_batch_may_be_larger_than_the_set(tmp_path: Path) -> None:
    source = open_samples(save(tmp_path / "c.npz", x=ramp(7, 3, 4, 4)), IMAGE)
    (batch,) = source.iterate_batches(shapes_of(IMAGE, 128))
    assert (batch.feeds["x"].shape, len(batch.samples), batch.padding) == ((7, 3, 4, 4), 7, 0)


@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    batch=st.integers(1, 9),
    compressed=st.booleans(),
)
def test_samples_do_not_depend_on_files_or_batches(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], batch: int, compressed: bool
) -> None:
    folder = tmp_path_factory.mktemp("split")
    ids, mask = ramp(sum(counts), 3, dtype=np.int64), ramp(sum(counts), 3, dtype=np.int64) * 7
    starts = np.cumsum([0, *counts])
    write = np.savez_compressed if compressed else np.savez
    for number, (first, end) in enumerate(pairwise(starts)):
        write(folder / f"{number}.npz", ids=ids[first:end], mask=mask[first:end])
    source = open_samples(folder, TOKENS)
    assert len(source) == sum(counts)
    for _ in range(2):  # a source may be iterated again
        batches = list(source.iterate_batches(shapes_of(TOKENS, batch)))
        np.testing.assert_array_equal(np.concatenate([b.feeds["ids"] for b in batches]), ids)
        np.testing.assert_array_equal(np.concatenate([b.feeds["mask"] for b in batches]), mask)
        assert all(len(b.samples) == batch for b in batches[:-1])
        origins = [origin for b in batches for origin in b.samples]
        assert len(set(origins)) == sum(counts)


@pytest.mark.parametrize(
    "stored",
    [
        np.asfortranarray(ramp(5, 3, 4, 4)),
        ramp(5, 3, 4, 4, dtype=">f4"),
        ramp(5, 3, 4, 4, dtype=np.float16),
    ],
    ids=["fortran", "big-endian", "float16"],
)
def test_memory_layout_and_narrower_floats_keep_their_values(tmp_path: Path, stored: Any) -> None:
    np.save(tmp_path / "x.npy", stored)
    source = open_samples(tmp_path / "x.npy", IMAGE)
    found = stack(source, shapes_of(IMAGE, 2), "x", 0)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, stored.astype(np.float32))


def test_widening_is_noted(tmp_path: Path) -> None:
    path = save(tmp_path / "t.npz", ids=ramp(2, 5, dtype=np.int32), mask=ramp(2, 5, dtype=np.int64))
    source = open_samples(path, TOKENS)
    assert source.notes == ("input 'ids': int32 widened to int64",)
    (batch,) = source.iterate_batches(shapes_of(TOKENS, 2))
    assert batch.feeds["ids"].dtype == np.int64


def test_one_sample_needs_no_batch_axis(tmp_path: Path) -> None:
    path = save(tmp_path / "t.npz", ids=ramp(5, dtype=np.int64), mask=ramp(5, dtype=np.int64))
    source = open_samples(path, TOKENS)
    (batch,) = source.iterate_batches(shapes_of(TOKENS))
    assert len(source) == 1
    assert get_shapes(batch) == {"ids": (1, 5), "mask": (1, 5)}


def test_input_without_batch_axis_is_shared(tmp_path: Path) -> None:
    pos = ramp(9, 2)
    path = save(tmp_path / "t.npz", tokens=ramp(3, 9, 2), pos=pos, mask=ramp(3, 9, dtype=np.int32))
    batches = list(open_samples(path, TIED).iterate_batches(shapes_of(TIED, 2)))
    assert [b.feeds["tokens"].shape for b in batches] == [(2, 9, 2), (1, 9, 2)]
    assert all(np.array_equal(b.feeds["pos"], pos) for b in batches)


def test_samples_that_differ_in_a_shared_input_do_not_meet(tmp_path: Path) -> None:
    pos = np.stack([ramp(9, 2), ramp(9, 2), ramp(9, 2) + 1])
    path = save(tmp_path / "t.npz", tokens=ramp(3, 9, 2), pos=pos, mask=ramp(3, 9, dtype=np.int32))
    batches = list(open_samples(path, TIED).iterate_batches(shapes_of(TIED, 3)))
    assert [len(b.samples) for b in batches] == [2, 1]
    np.testing.assert_array_equal(batches[1].feeds["pos"], pos[2])


def test_batch_axis_need_not_come_first(tmp_path: Path) -> None:
    state = ramp(2, 5, 3)
    path = save(tmp_path / "v.npz", input=ramp(5, 8), state=state, sr=np.int64(16000))
    source = open_samples(path, VOICE)
    np.testing.assert_array_equal(stack(source, shapes_of(VOICE, 2), "state", 1), state)
    batch = next(source.iterate_batches(shapes_of(VOICE, 2)))
    assert get_shapes(batch) == {"input": (2, 8), "state": (2, 2, 3), "sr": ()}


def test_fixed_batch_is_filled_up_and_says_so(tmp_path: Path) -> None:
    data = ramp(6, 3, 2, 2)
    source = open_samples(save(tmp_path / "c.npz", x=data), FIXED)
    first, last = source.iterate_batches({"x": (4, 3, 2, 2)})
    assert (first.padding, last.padding) == (0, 2)
    np.testing.assert_array_equal(last.feeds["x"], data[[4, 5, 4, 5]])
    assert len(last.samples) == 2


def test_smallest_batch_of_an_engine_is_respected(tmp_path: Path) -> None:
    source = open_samples(save(tmp_path / "c.npz", x=ramp(5, 3, 4, 4)), IMAGE)
    batches = list(source.iterate_batches(shapes_of(IMAGE, 4), min_batch=2))
    assert [(b.feeds["x"].shape[0], b.padding) for b in batches] == [(4, 0), (2, 1)]


def test_model_without_batch_takes_one_run_per_file_or_row(tmp_path: Path) -> None:
    one = save(tmp_path / "one.npz", x=ramp(1, 3, 5, 6), out_size=np.array([7, 8]))
    (batch,) = open_samples(one, SIZED).iterate_batches(shapes_of(SIZED))
    assert get_shapes(batch) == {"x": (1, 3, 5, 6), "out_size": (2,)}
    rows = save(tmp_path / "rows.npz", x=ramp(3, 1, 3, 5, 6), out_size=ramp(3, 2, dtype=np.int64))
    batches = list(open_samples(rows, SIZED).iterate_batches(shapes_of(SIZED)))
    assert [b.feeds["out_size"].tolist() for b in batches] == [[0, 1], [2, 3], [4, 5]]


def test_samples_of_equal_length_share_batches(tmp_path: Path) -> None:
    for number, length in enumerate([5, 7, 5, 7, 5]):
        row = np.full((1, length), number, np.int64)
        save(tmp_path / f"{number}.npz", ids=row, mask=row)
    batches = list(open_samples(tmp_path, TOKENS).iterate_batches(shapes_of(TOKENS, 2)))
    assert [b.feeds["ids"][:, 0].tolist() for b in batches] == [[0, 2], [4], [1, 3]]


def test_other_arrays_and_files_are_noted(tmp_path: Path) -> None:
    save(tmp_path / "a.npz", x=ramp(1, 3, 4, 4), labels=np.array([3]))
    (tmp_path / "README.md").write_text("x")
    (tmp_path / ".hidden.npz").write_text("x")
    notes = open_samples(tmp_path, IMAGE).notes
    assert "arrays that are no input and are not read: labels" in notes
    assert "files that are neither arrays nor images, ignored: 1" in notes


def test_pixels_go_through_the_preprocessing(tmp_path: Path) -> None:
    pixels = ramp(2, 3, 4, 4, dtype=np.uint8)
    path = save(tmp_path / "p.npz", x=pixels)
    with pytest.raises(InputError, match="'preprocessing:' section"):
        open_samples(path, IMAGE)
    section = PreprocessingSection(scale="1/255", mean=[0.1, 0.2, 0.3], std=0.5)
    source = open_samples(path, IMAGE, section)
    assert "scaled" in source.notes[0]
    mean = np.array([0.1, 0.2, 0.3]).reshape(1, 3, 1, 1)
    expected = (pixels / 255 - mean) / 0.5
    np.testing.assert_allclose(stack(source, shapes_of(IMAGE), "x", 0), expected, atol=1e-6)


def test_memory_does_not_grow_with_the_number_of_samples(tmp_path: Path) -> None:
    inputs = (TensorSpec("x", F32, ("N", 64, 256)),)
    sample_bytes = 64 * 256 * 4
    peaks = []
    for count in (8, 256):
        path = save(tmp_path / f"{count}.npz", x=np.zeros((count, 64, 256), np.float32))
        tracemalloc.start()
        seen = sum(
            len(b.samples) for b in open_samples(path, inputs).iterate_batches({"x": (4, 64, 256)})
        )
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert seen == count
    assert peaks[1] < peaks[0] + sample_bytes
    assert peaks[1] < 20 * sample_bytes


def nonfinite_file(folder: Path) -> Path:
    data = ramp(6, 3, 4, 4)
    data[2, 0, 1, 1] = np.nan
    data[4, 1, 0, 0] = np.inf
    return save(folder / "bad.npz", x=data)


def test_nonfinite_sample_is_named(tmp_path: Path) -> None:
    source = open_samples(nonfinite_file(tmp_path), IMAGE)
    with pytest.raises(InputError, match=r"bad\.npz, sample 2, input 'x': 1 NaN and 0 infinite"):
        list(source.iterate_batches(shapes_of(IMAGE)))


def test_skipped_samples_are_counted_once_and_leave_the_rest_alone(tmp_path: Path) -> None:
    source = open_samples(nonfinite_file(tmp_path), IMAGE, on_nonfinite="skip")
    clean = open_samples(save(tmp_path / "c.npz", x=ramp(6, 3, 4, 4)[[0, 1, 3, 5]]), IMAGE)
    for _ in range(2):
        found = [b.feeds["x"] for b in source.iterate_batches(shapes_of(IMAGE, 3))]
        wanted = [b.feeds["x"] for b in clean.iterate_batches(shapes_of(IMAGE, 3))]
        assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert [(bad.id.index, bad.nan_count, bad.inf_count) for bad in source.skipped] == [
        (2, 1, 0),
        (4, 0, 1),
    ]


def test_nothing_but_bad_samples_is_an_error(tmp_path: Path) -> None:
    path = save(tmp_path / "b.npz", x=np.full((2, 3, 4, 4), np.nan, np.float32))
    source = open_samples(path, IMAGE, on_nonfinite="skip")
    with pytest.raises(InputError, match="no usable sample"):
        list(source.iterate_batches(shapes_of(IMAGE)))


def test_different_batch_sizes_are_refused(tmp_path: Path) -> None:
    path = save(tmp_path / "t.npz", ids=ramp(2, 5, dtype=np.int64), mask=ramp(2, 5, dtype=np.int64))
    with pytest.raises(UsageError, match="'ids' 2, 'mask' 3"):
        next(open_samples(path, TOKENS).iterate_batches({"ids": (2, 5), "mask": (3, 5)}))


GOOD = ramp(2, 5, dtype=np.int64)


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"idz": GOOD, "mask": GOOD}, "input 'ids': no array of that name. Did you mean 'idz'?"),
        ({"ids": GOOD, "mask": GOOD * 1.0}, "given float64 2x5, expected int64 batchxseq"),
        ({"ids": GOOD > 0, "mask": GOOD}, "given bool 2x5, expected int64"),
        ({"ids": GOOD.astype(np.uint64), "mask": GOOD}, "given uint64 2x5, expected int64"),
        ({"ids": GOOD[None], "mask": GOOD}, "given int64 1x2x5, expected int64 batchxseq"),
        ({"ids": GOOD, "mask": GOOD[:1]}, "number of samples: given 'ids' 2, 'mask' 1"),
        ({"ids": GOOD, "mask": GOOD[:, :4]}, "symbol 'seq': given ids axis 1 5, mask axis 1 4"),
        ({"ids": GOOD.astype(object), "mask": GOOD}, "pickled Python objects"),
        ({"ids": GOOD[:0], "mask": GOOD[:0]}, "holds no samples"),
    ],
)
def test_misfit_is_explained(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    path = save(tmp_path / "t.npz", **arrays)
    with pytest.raises(InputError) as caught:
        open_samples(path, TOKENS)
    assert expected in caught.value.message
    assert str(path) in caught.value.message


@pytest.mark.parametrize("given", [ramp(1, 3, 4, 5), ramp(3, 4, 5), ramp(1, 4, 4, 3)])
def test_wrong_size_is_explained(tmp_path: Path, given: Any) -> None:
    np.save(tmp_path / "x.npy", given)
    with pytest.raises(InputError, match=r"expected float32 Nx3x4x4"):
        open_samples(tmp_path / "x.npy", IMAGE)


def test_all_bad_files_come_in_one_error(tmp_path: Path) -> None:
    for number in range(20):
        save(tmp_path / f"{number:02}.npz", y=GOOD)
    with pytest.raises(InputError) as caught:
        open_samples(tmp_path, TOKENS)
    message = caught.value.message
    assert message.startswith("40 problems:")
    assert "00.npz" in message
    assert message.endswith("and 28 more")


@pytest.mark.parametrize("suffix", [".npz", ".npy"])
@pytest.mark.parametrize("damage", ["empty", "garbage", "cut"])
def test_damaged_file_is_named(tmp_path: Path, suffix: str, damage: str) -> None:
    path = tmp_path / f"x{suffix}"
    if suffix == ".npz":
        save(path, x=ramp(9, 3, 4, 4))
    else:
        np.save(path, ramp(9, 3, 4, 4))
    whole = path.read_bytes()
    path.write_bytes({"empty": b"", "garbage": b"\x93abc" * 50, "cut": whole[:-300]}[damage])
    with pytest.raises(InputError) as caught:
        open_samples(path, IMAGE)
    assert str(path) in caught.value.message


def test_damaged_data_is_found_on_the_way(tmp_path: Path) -> None:
    path = save(tmp_path / "x.npz", x=ramp(200, 3, 4, 4))
    broken = bytearray(path.read_bytes())
    broken[len(broken) // 2] ^= 255
    path.write_bytes(broken)
    source = open_samples(path, IMAGE)
    with pytest.raises(InputError, match=r"x\.npz cannot be read"):
        list(source.iterate_batches(shapes_of(IMAGE)))


def test_wrong_places_are_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        open_samples(tmp_path / "none.npz", IMAGE)
    with pytest.raises(InputError, match="holds no sample inputs"):
        open_samples(tmp_path, IMAGE)
    np.save(tmp_path / "x.npy", GOOD)
    with pytest.raises(InputError, match=r"one array without a name, expected .*'ids', 'mask'"):
        open_samples(tmp_path, TOKENS)
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match="expected one kind"):
        open_samples(tmp_path, IMAGE)
    with pytest.raises(InputError, match="the model has no inputs"):
        open_samples(tmp_path, ())
