"""Attribute values of well-formed nodes."""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

AttributeValue = int | float | str | tuple[int, ...]


def value_of(node: NodeProto, name: str) -> AttributeValue | None:
    """Return a number, text or list of integers; None if absent or of another type."""
    for attribute in node.attribute:
        if attribute.name == name:
            return _read(attribute)
    return None


def integer_of(node: NodeProto, name: str, default: int) -> int:
    """Return an integer attribute, or ``default`` when it is absent."""
    value = value_of(node, name)
    return value if isinstance(value, int) else default


def _read(attribute: AttributeProto) -> AttributeValue | None:
    if attribute.type == AttributeProto.INT:
        return int(attribute.i)
    if attribute.type == AttributeProto.FLOAT:
        return float(attribute.f)
    if attribute.type == AttributeProto.STRING:
        return attribute.s.decode("utf-8", "replace")
    if attribute.type == AttributeProto.INTS:
        return tuple(attribute.ints)
    return None
