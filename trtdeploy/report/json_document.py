"""JSON files of an output folder as typed values, and back: one way in, one way out.

What a file holds is read strictly into the dataclasses that the work itself is done with. Every
text and every number passes ``parse_json`` before anything is built from it; a value that a class
derives (a verdict) is written, and derived anew when it is read.
"""

from __future__ import annotations

import json
import math
import re
from functools import cache
from typing import Any, Final, TypeVar, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, from_json, to_json

from trtdeploy.core.errors import InputError

SCHEMA_VERSION: Final = 2
"""Of ``report.json`` and ``manifest.json``. It changes when a key goes away or changes its meaning;
keys that a later trtdeploy adds are left alone."""
BUILD_AGAIN = "Build the folder again."
_ANOTHER_VERSION = (
    "Build the folder again (trtdeploy build MODEL.onnx --profile NAME --rebuild), or use the "
    "trtdeploy that wrote it."
)
_LARGEST = 2**63 - 1
_UNSAFE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
"""Control characters (a terminal obeys them, XML 1.0 forbids them), those that reorder text, and
halves of characters, which no file can hold: names of files may be any bytes."""
_LONGEST_PLACE = 200
_LONGEST_VALUE = 60

T = TypeVar("T")


def replace_controls(text: str) -> str:
    """Return ``text`` with U+FFFD in place of every control character but tab and line feed."""
    return _UNSAFE.sub("\ufffd", text)


def parse_document(kind: type[T], raw: bytes, label: str, hint: str = BUILD_AGAIN) -> T:
    """Return what a file of this schema version holds.

    Args:
        kind: The class of the whole file.
        raw: The JSON text.
        label: How messages call it, e.g. its path.
        hint: What to do about a damaged file.

    Raises:
        InputError: It is damaged, or has a schema this version cannot read.
    """
    data = parse_json(raw, label, hint)
    found = data.get("schema_version") if isinstance(data, dict) else None
    if type(found) is not int:
        raise InputError(f"{label} is damaged: it has no schema version", hint=hint)
    if found != SCHEMA_VERSION:
        raise InputError(
            f"{label} has schema version {found}; this trtdeploy reads {SCHEMA_VERSION}",
            hint=_ANOTHER_VERSION,
        )
    return read_value(kind, data, label, hint)


def make_adapter(kind: type[T]) -> TypeAdapter[T]:
    """Return what reads and writes a class; strictly, where its ``__pydantic_config__`` says so."""
    return cast("TypeAdapter[T]", _make_adapter(cast("Any", kind)))


@cache
def _make_adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def parse_json(raw: bytes, label: str, hint: str = BUILD_AGAIN) -> Any:
    """Return plain data whose texts can be shown anywhere.

    Args:
        raw: The JSON text; NaN and infinities may stand in it.
        label: How messages call it.
        hint: What to do about a damaged file.

    Raises:
        InputError: It is no JSON, or nested too deeply.
    """
    try:
        return clean_texts(from_json(raw))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{label} is damaged: {error}", hint=hint) from error


def read_value(kind: type[T], data: Any, label: str, hint: str = BUILD_AGAIN) -> T:
    """Return plain data as a typed value; unknown keys are left alone.

    Args:
        kind: The class of the whole.
        data: From ``parse_json``.
        label: How messages call it.
        hint: What to do about damage.

    Raises:
        InputError: It is not what the class says; the message names the first place.
    """
    try:
        # As JSON text: there a list is a tuple and a word a member of an enum, strict or not.
        return make_adapter(kind).validate_json(to_json(data, inf_nan_mode="constants"))
    except ValidationError as error:
        raise InputError(f"{label} is damaged: {describe_damage(error)}", hint=hint) from error


def clean_value(kind: type[T], value: T) -> T:
    """Return a value with texts that can be shown anywhere: a model names nodes and outputs."""
    data = make_adapter(kind).dump_python(value, mode="json")
    return read_value(kind, clean_texts(data), kind.__name__)


def dump_document(value: Any) -> Any:
    """Return a dataclass as plain data, with what it derives; infinite figures stay infinite."""
    return make_adapter(type(value)).dump_python(value, mode="json")


def render_document(kind: type[T], value: T) -> str:
    """Return the JSON text of a value; of a class that adds to ``kind``, what ``kind`` has."""
    data = clean_texts(make_adapter(kind).dump_python(value, mode="json"))
    text = json.dumps(drop_infinities(data), indent=2, ensure_ascii=False, allow_nan=False)
    return text + "\n"


def drop_infinities(data: Any) -> Any:
    """Return plain data as JSON can hold it: figures that are not finite are null."""
    if isinstance(data, dict):
        return {key: drop_infinities(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [drop_infinities(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data


def clean_texts(data: Any) -> Any:
    """Return plain data whose texts can be shown anywhere, and whose numbers have a size."""
    if isinstance(data, str):
        return replace_controls(data)
    if isinstance(data, dict):
        return {replace_controls(key): clean_texts(value) for key, value in data.items()}
    if isinstance(data, list):
        return [clean_texts(value) for value in data]
    if isinstance(data, int) and not -_LARGEST <= data <= _LARGEST:
        return float(data)  # an amount may be this large, a count is none
    return data


def describe_damage(error: ValidationError) -> str:
    """Return the first problem as ``place: what is wrong, given what``, and how many more."""
    details = error.errors(include_url=False, include_context=False)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return _describe_one(details[0]) + more


def _describe_one(detail: ErrorDetails) -> str:
    keys = [*detail["loc"]]
    if keys[:2] in (["parity", "checked"], ["parity", "skipped"]):
        del keys[1]  # the union's own name for its member, no key of the file
    place = replace_controls(".".join(map(str, keys)))[:_LONGEST_PLACE]
    if detail["type"] == "json_invalid" or not place:
        return detail["msg"]
    if detail["type"] == "value_error":
        return f"{place}: {detail['msg'].removeprefix('Value error, ')}"
    given = detail["input"]
    shown = type(given).__name__ if isinstance(given, dict | list) else ascii(given)
    return f"{place}: {detail['msg']}, given {shown[:_LONGEST_VALUE]}"
