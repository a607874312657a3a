"""Just enough of the protobuf wire format to find the weights of an ONNX file without reading them.

Encoding: https://protobuf.dev/programming-guides/encoding/ . Field numbers: onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
MODEL_GRAPH, GRAPH_INITIALIZER, TENSOR_RAW_DATA = 7, 5, 9

_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}
_MORE, _BITS = 0x80, 0x7F
_LAST_SHIFT = 63


class WireError(ValueError):
    """The bytes are not a well-formed protobuf message."""


@dataclass(frozen=True)
class Field:
    """One field of a message: ``begin`` is its tag, ``start:end`` its payload."""

    number: int
    wire_type: int
    begin: int
    start: int
    end: int


def read_varint(data: memoryview, position: int, limit: int) -> tuple[int, int]:
    """Return (value, position after it).

    Raises:
        WireError: The bytes end inside the number, or it is longer than 64 bits.
    """
    value = shift = 0
    while position < limit:
        byte = data[position]
        position += 1
        value |= (byte & _BITS) << shift
        if byte < _MORE:
            return value, position
        shift += 7
        if shift > _LAST_SHIFT:
            raise WireError(f"a number at byte {position} is too long")
    raise WireError(f"the file ends inside a number at byte {position}")


def iterate_fields(data: memoryview, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of the message that occupies ``data[start:end]``.

    Raises:
        WireError: A field runs past the end, or has a wire type that ONNX never uses.
    """
    position = start
    while position < end:
        begin = position
        tag, position = read_varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        if wire_type == LENGTH:
            length, position = read_varint(data, position, end)
            stop = position + length
        elif wire_type == VARINT:
            _, stop = read_varint(data, position, end)
        elif wire_type in _FIXED_BYTES:
            stop = position + _FIXED_BYTES[wire_type]
        else:
            raise WireError(f"byte {begin} does not start a field")
        if number == 0:
            raise WireError(f"byte {begin} does not start a field")
        if stop > end:
            raise WireError(f"a field at byte {begin} is cut short by {stop - end} bytes")
        yield Field(number, wire_type, begin, position, stop)
        position = stop


def encode_varint(value: int) -> bytes:
    """Return the base-128 encoding of a non-negative number."""
    encoded = bytearray()
    while value > _BITS:
        encoded.append(value & _BITS | _MORE)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_length_tag(number: int, length: int) -> bytes:
    """Return the tag and length that go in front of a length-delimited field."""
    return encode_varint(number << 3 | LENGTH) + encode_varint(length)
