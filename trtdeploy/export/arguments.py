"""Options of ``trtdeploy export`` as text; names may hold dots and colons."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.core.names import suggest_name
from trtdeploy.export.request import InputSpec

INPUT_FORM: Final = "NAME:DTYPE:SHAPE, or NAME:DTYPE:SHAPE:LOW..HIGH"
DYNAMIC_FORM: Final = "NAME:AXIS=SYMBOL,AXIS=SYMBOL"

_INPUT_HINT = "For example: --input images:float32:2x3x224x224 or --input ids:int64:2x16:0..999"
_DYNAMIC_HINT = "For example: --dynamic images:0=batch,2=height,3=width"
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?"
_INPUT = re.compile(
    r"(?P<name>.+?):(?P<dtype>[A-Za-z][A-Za-z0-9]*):(?P<shape>scalar|[0-9]+(?:x[0-9]+)*)"
    rf"(?::(?P<low>{_NUMBER})(?:\.\.(?P<high>{_NUMBER}))?)?"
)
_AXIS = re.compile(r"(?P<axis>[0-9]+)=(?P<symbol>[A-Za-z_][A-Za-z0-9_]*)")
_STEP = re.compile(r"(?P<symbol>[^=]+)=(?P<given>[1-9][0-9]*)")
_SIZES = re.compile(r"(?P<symbol>[^=]+)=(?P<given>[1-9][0-9]*(?:,[1-9][0-9]*)*)")

_DTYPES: Final = {
    dtype.label: dtype
    for dtype in (
        DType.FLOAT32, DType.FLOAT64, DType.FLOAT16, DType.BFLOAT16, DType.INT8, DType.INT16,
        DType.INT32, DType.INT64, DType.UINT8, DType.BOOL,
    )
}  # fmt: skip


def parse_input_argument(text: str) -> InputSpec:
    """Read ``images:float32:2x3x224x224``; ``:0..999`` at its end limits the example's values.

    Raises:
        UsageError: Not of that form, an unknown type, or a size of 0.
    """
    match = _INPUT.fullmatch(text)
    if match is None:
        raise UsageError(f"--input {text!r}: expected {INPUT_FORM}", hint=_INPUT_HINT)
    dtype = _DTYPES.get(match["dtype"].lower())
    if dtype is None:
        raise UsageError(
            f"--input {text!r}: {match['dtype']!r} is no element type",
            hint=suggest_name(match["dtype"], _DTYPES),
        )
    shape = () if match["shape"] == "scalar" else tuple(map(int, match["shape"].split("x")))
    low = None if match["low"] is None else float(match["low"])
    high = low if match["high"] is None else float(match["high"])
    if 0 in shape:
        raise UsageError(f"--input {text!r}: an example needs sizes of 1 or more")
    if low is not None and high is not None and low > high:
        raise UsageError(f"--input {text!r}: {low:g} is larger than {high:g}")
    return InputSpec(match["name"], dtype, shape, low, high)


def parse_dynamic_arguments(texts: Sequence[str]) -> dict[str, dict[int, str]]:
    """Read ``images:0=batch,2=height``; a bare ``NAME:`` makes all sizes of an input fixed.

    Raises:
        UsageError: Not of that form, or an axis or an input is named twice.
    """
    dynamic: dict[str, dict[int, str]] = {}
    for text in texts:
        name, colon, axes = text.rpartition(":")
        if not colon or not name:
            raise UsageError(f"--dynamic {text!r}: expected {DYNAMIC_FORM}", hint=_DYNAMIC_HINT)
        if name in dynamic:
            raise UsageError(f"--dynamic {text!r}: {name!r} is given twice; use one comma list")
        dynamic[name] = _parse_axes(text, axes)
    return dynamic


def _parse_axes(text: str, axes: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in axes.split(",") if axes else ():
        match = _AXIS.fullmatch(entry)
        if match is None:
            raise UsageError(f"--dynamic {text!r}: expected {DYNAMIC_FORM}", hint=_DYNAMIC_HINT)
        if int(match["axis"]) in found:
            raise UsageError(f"--dynamic {text!r}: axis {match['axis']} is given twice")
        found[int(match["axis"])] = match["symbol"]
    return found


def parse_multiple_arguments(texts: Sequence[str]) -> dict[str, int]:
    """Read ``height=32``.

    Raises:
        UsageError: Not of that form, or a symbol is given twice.
    """
    given = _read_by_symbol(texts, _STEP, "--multiple", "SYMBOL=STEP", "height=32")
    return {symbol: int(step) for symbol, step in given.items()}


def parse_size_arguments(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read ``height=96,160``: sizes to prove the file at.

    Raises:
        UsageError: Not of that form, or a symbol is given twice.
    """
    given = _read_by_symbol(texts, _SIZES, "--prove-at", "SYMBOL=SIZE,SIZE", "height=96,160")
    return {symbol: tuple(map(int, sizes.split(","))) for symbol, sizes in given.items()}


def _read_by_symbol(
    texts: Sequence[str], pattern: re.Pattern[str], option: str, form: str, example: str
) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        match = pattern.fullmatch(text)
        if match is None or match["symbol"] in found:
            problem = "given twice" if match else f"expected {form}"
            raise UsageError(
                f"{option} {text!r}: {problem}", hint=f"For example: {option} {example}"
            )
        found[match["symbol"]] = match["given"]
    return found


def parse_settings(texts: Sequence[str]) -> dict[str, object]:
    """Read ``KEY=VALUE`` texts; a text may hold several, separated by commas.

    Values are JSON where they can be (``true``, ``12``, ``1e-12``), text otherwise.

    Raises:
        UsageError: No ``=``, or a key is given twice.
    """
    settings: dict[str, object] = {}
    for text in texts:
        for entry in _split_settings(text):
            key, equals, value = entry.partition("=")
            if not equals or not key.strip() or key.strip() in settings:
                problem = "given twice" if equals and key.strip() else "expected KEY=VALUE"
                raise UsageError(
                    f"--config {entry!r}: {problem}",
                    hint="For example: --config model_type=bert,num_hidden_layers=6",
                )
            settings[key.strip()] = _parse_value(value.strip())
    return settings


def _split_settings(text: str) -> list[str]:
    """Split at commas that a key follows: ``size=[1,2],name=x`` are two settings."""
    return re.split(r",(?=\s*[A-Za-z_][A-Za-z0-9_.]*\s*=)", text)


def _parse_value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)
    return value
