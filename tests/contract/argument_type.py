"""Which Python values a type in a pybind11 signature accepts.

The stand-in must never accept what TensorRT refuses. It may refuse what TensorRT lets through by
accident: an enum member where an int is wanted (a flag passed where a mask of ``1 << flag`` was
meant), an int where a bool is wanted, None where no None is offered.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

GENERIC = re.compile(r"^([\w.:]+)\[(.*)\]$")
# C++ classes that appear in a signature under a name that Python doesn't have.
PYTHON_NAMES = {
    "FallbackString": "str",
    "IBuilder": "Builder",
    "IEngineInspector": "EngineInspector",
    "IParserError": "ParserError",
}
# Classes that pybind11 makes by itself from a sequence of ints.
INT_SEQUENCES = {"Dims", "Dims2", "Dims3", "Dims4", "DimsExprs", "DimsHW", "Permutation"}


class StandinValue:
    """Base of every object and enum member of a stand-in, so that they can be told apart."""


def split_top_level(text: str) -> list[str]:
    """Split a list of parameters or type arguments at its commas, not inside of brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[(<{") - (character in "])>}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def python_name(text: str) -> str:
    """Return the last part of a type text: ``nvinfer1::TensorFormat`` to ``TensorFormat``."""
    name = text.rsplit("::", maxsplit=1)[-1].rsplit(".", maxsplit=1)[-1]
    return PYTHON_NAMES.get(name, name)


@cache
def split_generic(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the origin and the arguments of a type: ``List[int]`` to ``list``, ``("int",)``."""
    match = GENERIC.match(text)
    if not match:
        return python_name(text), ()
    return python_name(match[1]).lower(), tuple(split_top_level(match[2]))


def _is_int(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, StandinValue)


def _is_float(value: object) -> bool:
    return hasattr(value, "__float__") and not isinstance(value, StandinValue)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}


def _is_buffer(value: object) -> bool:
    try:
        memoryview(value)  # type: ignore[arg-type]  # whether it is a buffer is the question
    except TypeError:
        return False
    return True


def _is_handle(value: object) -> bool:
    return not isinstance(value, int | float | str)


def _is_anything(_value: object) -> bool:
    return True


PLAIN: Mapping[str, Callable[[object], bool]] = {
    "int": _is_int,
    "SupportsInt": _is_int,
    "float": _is_float,
    "SupportsFloat": _is_float,
    "bool": _is_bool,
    "str": lambda value: isinstance(value, str),
    "bytes": lambda value: isinstance(value, bytes),
    "buffer": _is_buffer,
    "Buffer": _is_buffer,
    "memoryview": _is_buffer,
    "capsule": _is_handle,
    "CapsuleType": _is_handle,
    "ndarray": lambda value: hasattr(value, "__array_interface__"),
    "Iterable": lambda value: isinstance(value, Iterable),
    "list": lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes),
    "tuple": lambda value: isinstance(value, Sequence) and not isinstance(value, str | bytes),
    "function": callable,
    "Callable": callable,
    "object": _is_anything,
}


def accepts_value(text: str, value: object, known: Mapping[str, type]) -> bool:
    """Tell whether a parameter of type `text` accepts a value.

    Args:
        text: The type as written in the signature.
        value: What the caller passed.
        known: The classes and enums of this version, by name. A C++ type that Python can't name
            accepts anything.
    """
    name, arguments = split_generic(text)
    if arguments and name in {"list", "sequence", "tuple"}:
        if not PLAIN["list"](value) or not isinstance(value, Sequence):
            return False
        inner = arguments if name == "tuple" else arguments * len(value)
        return len(inner) == len(value) and all(
            map(accepts_value, inner, value, [known] * len(value))
        )
    if name in PLAIN:
        return PLAIN[name](value)
    if name not in known or isinstance(value, known[name]):
        return True
    if name in INT_SEQUENCES:
        return accepts_value("List[int]", value, known)
    return name == "Weights" and PLAIN["ndarray"](value)
