"""Engine files are recognised by their first bytes; anything else is not."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.backends.engine.plan_header import HEADER_BYTES, parse_plan_header, read_plan_header


def make_plan(tag: bytes, version: tuple[int, int, int, int], capabilities: int = 0) -> bytes:
    start = bytearray(64)
    start[:4] = tag
    start[24:28] = bytes(version)
    struct.pack_into("<Q", start, 32, capabilities)
    return bytes(start)


def test_tensorrt_plan(tmp_path: Path) -> None:
    path = tmp_path / "model.engine"
    path.write_bytes(make_plan(b"ftrt", (10, 3, 0, 26)))
    header = read_plan_header(path)
    assert header is not None
    assert (header.product, header.version) == ("TensorRT", "10.3.0.26")
    assert (header.compute_capabilities, header.offset) == ((), 0)


def test_rtx_plan_names_its_gpus(tmp_path: Path) -> None:
    path = tmp_path / "model.engine"
    path.write_bytes(make_plan(b"vtrt", (1, 7, 1, 116), capabilities=8 | 16))
    header = read_plan_header(path)
    assert header is not None
    assert (header.product, header.version) == ("TensorRT-RTX", "1.7.1.116")
    assert header.compute_capabilities == ("8.9", "12.0")


def test_ultralytics_prefix_is_looked_through(tmp_path: Path) -> None:
    metadata = json.dumps({"task": "detect", "stride": 32}).encode()
    path = tmp_path / "yolo.engine"
    plan = make_plan(b"ftrt", (8, 6, 1, 6))
    path.write_bytes(struct.pack("<i", len(metadata)) + metadata + plan)
    header = read_plan_header(path)
    assert header is not None
    assert header.version == "8.6.1.6"
    assert header.offset == 4 + len(metadata)
    assert header.metadata == {"task": "detect", "stride": 32}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"ft",
        b"ftrt",
        b"hello, this is a text file and no engine at all, really not",
        struct.pack("<i", 10) + b"not json..",
        struct.pack("<i", 2) + b"[]" + make_plan(b"ftrt", (10, 0, 0, 0)),
        struct.pack("<i", -5) + bytes(60),
        struct.pack("<i", 2) + b"{}" + b"no plan behind it",
    ],
)
def test_anything_else_is_no_engine(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_plan_header(path) is None


@given(st.binary(max_size=2 * HEADER_BYTES))
def test_random_bytes_never_raise(content: bytes) -> None:
    header = parse_plan_header(content)
    assert header is None or content[:4] in (b"ftrt", b"vtrt")
