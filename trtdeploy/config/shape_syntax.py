"""Sizes as text on the command line; names may hold colons, spaces and any script."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError

from trtdeploy.config.shape_table import AxisSizes, ShapeTable, TensorSizes
from trtdeploy.config.yaml_text import LARGEST_FILE_BYTES
from trtdeploy.core.errors import OptimizationProfileError, TrtdeployError, UsageError
from trtdeploy.core.ranges import POINTS, ShapeRange, ValueRange

SHAPE_FORM: Final = "NAME:MIN:OPT:MAX, or NAME:SHAPE for one fixed shape"
SYMBOL_FORM: Final = "SYMBOL=MIN:OPT:MAX, or SYMBOL=SIZE for one fixed size"
VALUE_FORM: Final = "NAME:MIN:OPT:MAX, or NAME:VALUES for fixed contents"

_SHAPE_HINT = "For example: --shape 'images:1x3x320x320:4x3x640x640:8x3x1280x1280'"
_SYMBOL_HINT = "For example: --symbol batch=1:4:8"
_VALUE_HINT = "For example: --value 'out_size:8,8:20,33:64,64'"
_JSON_HINT = (
    'For example: --shape-json \'{"images": {"min": [1, 3], "opt": [4, 3], "max": [8, 3]}}\''
)

_NUMBER = r"-?[0-9]{1,18}"
_SHAPE = re.compile(rf"scalar|{_NUMBER}(?:[xX]{_NUMBER})*")
_VALUES = re.compile(rf"{_NUMBER}(?:,{_NUMBER})*")

_JsonShapes = TypeAdapter(dict[str, TensorSizes])

Row = tuple[int, ...]
Sizes = TypeVar("Sizes", AxisSizes, TensorSizes)


def parse_shape_table(
    shapes: Sequence[str] = (),
    symbols: Sequence[str] = (),
    values: Sequence[str] = (),
    shape_json: str | None = None,
) -> ShapeTable:
    """Return what ``--shape``, ``--symbol``, ``--value`` and ``--shape-json`` say together.

    Raises:
        UsageError: A text has the wrong form, or a name occurs twice.
        OptimizationProfileError: The file behind ``shape_json`` is wrong.
    """
    inputs = dict(parse_shape_json(shape_json)) if shape_json else {}
    for text in shapes:
        _add_once(inputs, parse_shape_argument(text), "--shape", text)
    by_symbol: dict[str, AxisSizes] = {}
    for text in symbols:
        _add_once(by_symbol, parse_symbol_argument(text), "--symbol", text)
    by_value: dict[str, TensorSizes] = {}
    for text in values:
        _add_once(by_value, parse_value_argument(text), "--value", text)
    return ShapeTable(symbols=by_symbol, inputs=inputs, values=by_value)


def parse_shape_argument(text: str) -> tuple[str, TensorSizes]:
    """Read ``NAME:MIN:OPT:MAX`` (or ``NAME:SHAPE``); ``scalar`` is the shape of rank 0.

    Split from the right, so the name may hold colons. A name that itself ends like a shape
    (``x:1:2``) needs the three-part form.

    Raises:
        UsageError: Not of that form.
    """
    parts = _split_points(text, _SHAPE)
    if parts is None:
        raise UsageError(f"--shape {text!r}: expected {SHAPE_FORM}", hint=_SHAPE_HINT)
    return parts[0], _build_sizes(parts[1], _parse_shape)


def parse_value_argument(text: str) -> tuple[str, TensorSizes]:
    """Read ``NAME:MIN:OPT:MAX`` (or ``NAME:VALUES``) with comma-separated integers.

    Raises:
        UsageError: Not of that form.
    """
    parts = _split_points(text, _VALUES)
    if parts is None:
        raise UsageError(f"--value {text!r}: expected {VALUE_FORM}", hint=_VALUE_HINT)
    return parts[0], _build_sizes(parts[1], lambda row: tuple(map(int, row.split(","))))


def parse_symbol_argument(text: str) -> tuple[str, AxisSizes]:
    """Read ``SYMBOL=MIN:OPT:MAX`` or ``SYMBOL=SIZE``.

    Raises:
        UsageError: Not of that form.
    """
    symbol, _, sizes = text.rpartition("=")
    numbers = sizes.split(":")
    if (
        not symbol
        or len(numbers) not in (1, 3)
        or not all(re.fullmatch(_NUMBER, number) for number in numbers)
    ):
        raise UsageError(f"--symbol {text!r}: expected {SYMBOL_FORM}", hint=_SYMBOL_HINT)
    low, usual, high = map(int, numbers * 3 if len(numbers) == 1 else numbers)
    return symbol, AxisSizes(min=low, opt=usual, max=high)


def parse_shape_json(text_or_path: str) -> dict[str, TensorSizes]:
    """Read ``{INPUT: {"min": [...], "opt": [...], "max": [...]}}`` from JSON text or a file.

    Args:
        text_or_path: JSON when it starts with ``{``, else the path of a JSON file.

    Raises:
        UsageError: The text is wrong.
        OptimizationProfileError: The file is missing, unreadable or wrong.
    """
    is_text = text_or_path.lstrip().startswith("{")
    refuse: type[TrtdeployError] = UsageError if is_text else OptimizationProfileError
    label = "--shape-json" if is_text else f"--shape-json {text_or_path}"
    text = text_or_path if is_text else _read_json_file(Path(text_or_path), label)
    try:
        return _JsonShapes.validate_python(json.loads(text, object_pairs_hook=_refuse_duplicates))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        message = f"{label}: {where}: {first['msg']}, given {first['input']!r:.80}"
    except (ValueError, RecursionError) as error:
        message = f"{label}: not valid JSON: {error}"
    raise refuse(message, hint=_JSON_HINT)


def format_shape_argument(name: str, shape: ShapeRange) -> str:
    """Return the text that ``parse_shape_argument`` reads back, whatever the name holds."""
    rows = ("x".join(map(str, shape.at(point))) or "scalar" for point in POINTS)
    return ":".join((name, *rows))


def format_value_argument(name: str, values: ValueRange) -> str:
    """Return the text that ``parse_value_argument`` reads back, whatever the name holds."""
    return ":".join((name, *(",".join(map(str, values.at(point))) for point in POINTS)))


def _split_points(text: str, pattern: re.Pattern[str]) -> tuple[str, tuple[str, str, str]] | None:
    """Split the name from three points, or from one that stands for all three."""
    match text.rsplit(":", len(POINTS)):
        case [name, low, usual, high] if name and all(map(pattern.fullmatch, (low, usual, high))):
            return name, (low, usual, high)
    name, _, point = text.rpartition(":")
    before = name.rpartition(":")[2]
    # "images:1x3:4x3" is a forgotten point, "serving_default:0:3" is a TensorFlow name.
    forgotten = before != name and not before.isdecimal() and pattern.fullmatch(before)
    if not name or not pattern.fullmatch(point) or forgotten:
        return None
    return name, (point, point, point)


def _build_sizes(points: tuple[str, str, str], parse: Callable[[str], Row]) -> TensorSizes:
    low, usual, high = (parse(point) for point in points)
    return TensorSizes(min=low, opt=usual, max=high)


def _parse_shape(text: str) -> Row:
    return () if text == "scalar" else tuple(map(int, re.split("[xX]", text)))


def _add_once(known: dict[str, Sizes], entry: tuple[str, Sizes], option: str, text: str) -> None:
    name, sizes = entry
    if name in known:
        raise UsageError(f"{option} {text!r}: {name!r} has its sizes already")
    known[name] = sizes


def _refuse_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {key!r} is there twice")
        result[key] = value
    return result


def _read_json_file(path: Path, label: str) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OptimizationProfileError(f"{label}: cannot be read: {reason}") from error
    if len(raw) > LARGEST_FILE_BYTES:
        raise OptimizationProfileError(f"{label}: larger than 1 MiB")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OptimizationProfileError(f"{label}: not UTF-8 text: {error}") from error
