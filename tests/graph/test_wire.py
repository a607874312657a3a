from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.graph.wire import (
    FIXED32,
    FIXED64,
    LENGTH,
    VARINT,
    Field,
    WireError,
    encode_length_tag,
    encode_varint,
    iterate_fields,
    read_varint,
)


def fields_of(data: bytes) -> list[Field]:
    return list(iterate_fields(memoryview(data), 0, len(data)))


@given(st.integers(0, 2**63 - 1))
def test_a_number_reads_back(number: int) -> None:
    encoded = encode_varint(number)
    assert read_varint(memoryview(encoded), 0, len(encoded)) == (number, len(encoded))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x80", "ends inside a number"),
        (b"\xff" * 11, "too long"),
        (b"\x0a\x05abc", "cut short by 2 bytes"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "cut short"),
        (b"\x0d\x00\x00", "cut short by 2 bytes"),
        (b"\x09\x00\x00", "cut short by 6 bytes"),
        (b"\x0b", "does not start a field"),
        (b"\x0e", "does not start a field"),
        (b"\x02\x00", "does not start a field"),
        (b"\x00\x00", "does not start a field"),
    ],
)
def test_damage_is_named(data: bytes, message: str) -> None:
    with pytest.raises(WireError, match=message):
        fields_of(data)


def test_fields_of_every_wire_type() -> None:
    data = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678" + b"\x32\x00"
    found = [(f.number, f.wire_type, data[f.start : f.end]) for f in fields_of(data)]
    assert found == [
        (1, VARINT, b"\x96\x01"),
        (2, LENGTH, b"abc"),
        (3, FIXED32, b"1234"),
        (4, FIXED64, b"12345678"),
        (6, LENGTH, b""),
    ]


payloads = st.lists(st.tuples(st.integers(1, 1 << 20), st.binary(max_size=40)), max_size=8)


@given(payloads)
def test_written_fields_read_back(written: list[tuple[int, bytes]]) -> None:
    data = b"".join(encode_length_tag(n, len(payload)) + payload for n, payload in written)
    assert [(f.number, data[f.start : f.end]) for f in fields_of(data)] == written


@given(payloads)
def test_fields_cover_the_bytes_without_a_gap(written: list[tuple[int, bytes]]) -> None:
    data = b"".join(encode_length_tag(n, len(payload)) + payload for n, payload in written)
    ends = [0, *(field.end for field in fields_of(data))]
    assert [field.begin for field in fields_of(data)] == ends[:-1]
    assert ends[-1] == len(data)


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_but_wire_errors(data: bytes) -> None:
    with contextlib.suppress(WireError):
        for field in fields_of(data):
            assert 0 <= field.begin < field.start <= field.end <= len(data)
