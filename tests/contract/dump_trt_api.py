"""Describe one TensorRT bindings module as JSON on stdout.

Usage:
    python dump_trt_api.py MODULE

The module must be importable: its unpacked wheel on PYTHONPATH, and the libraries that it links
(the stubs of ``stub_nvinfer.c`` are enough) on LD_LIBRARY_PATH. `regenerate_api.py` arranges that.

The output has the keys ``version``, ``enums``, ``aliases``, ``classes`` and ``functions``;
``api_data.py`` describes what they hold.
"""

import importlib
import inspect
import json
import re
import sys
from types import ModuleType
from typing import Any

MODULE_PREFIX = re.compile(
    r"(tensorrt(_rtx)?_bindings\.(tensorrt(_rtx)?\.)?|(?<![\w.])tensorrt(_rtx)?\.)(?=[A-Z])"
)
# Where pybind11 finds these two depends on the Python that runs it; the API is the same.
MOVED_TYPE = re.compile(r"\b(?:types|collections\.abc)\.(?=CapsuleType\b|Buffer\b)")
SIGNATURE = re.compile(r"^(?:\d+\. )?(\w*)(\(.*\)(?: -> .+)?)$")
PROTOCOLS = ("__bool__", "__enter__", "__getitem__", "__iter__", "__len__", "__setitem__")


def clean_types(docstring: str) -> str:
    """Take out of pybind11's text what isn't the same in every module and every Python."""
    return MOVED_TYPE.sub("typing_extensions.", MODULE_PREFIX.sub("", docstring))


def read_signatures(function: object, name: str) -> list[str]:
    """Return the signature lines that pybind11 wrote at the top of a docstring.

    An overloaded function has one line ``name(*args, **kwargs)`` first, then one numbered line for
    each overload. Docstrings of anything but a pybind11 function yield nothing, because their first
    line doesn't start with the function's own name.
    """
    found = []
    for line in (getattr(function, "__doc__", None) or "").splitlines():
        match = SIGNATURE.match(line.strip())
        if match and match[1] == name:
            found.append(name + clean_types(match[2]))
    is_overloaded = bool(found) and "*args" in found[0]
    return found if is_overloaded else found[:1]


def read_property(prop: property) -> dict[str, str | None]:
    """Return the types that a property gives and takes; None where it can't be read or written."""
    found = {}
    for key, function, pattern in (
        ("get", prop.fget, r"-> (.+)"),
        # Some setters return a bool (refused or not), which an assignment throws away.
        ("set", prop.fset, r", \w+: (.+)\) -> \w+"),
    ):
        match = re.search(pattern, clean_types(getattr(function, "__doc__", None) or ""))
        found[key] = match[1] if match else None if function is None else "object"
    return found


def read_members(enum: Any) -> dict[str, int]:
    """Return the members of a pybind11 enum in the order of their definition."""
    return {name: int(member) for name, member in enum.__members__.items()}


def is_enum(value: object) -> bool:
    """Tell whether a value is an enum class."""
    return inspect.isclass(value) and hasattr(value, "__members__")


def describe_class(cls: type) -> dict[str, object]:
    """Return everything that a caller can see of one class, inherited members included."""
    public = [name for name in dir(cls) if not name.startswith("_")]
    values = {name: inspect.getattr_static(cls, name) for name in public}
    signatures = {n: read_signatures(getattr(cls, n), n) for n in [*public, "__init__"]}
    described: dict[str, object] = {
        "attributes": public,
        "bases": [b.__name__ for b in cls.__mro__[1:] if "pybind11" not in b.__name__][:-1],
        "signatures": {name: lines[0] for name, lines in signatures.items() if lines},
        "overloads": {name: lines[1:] for name, lines in signatures.items() if lines[1:]},
        "properties": {n: read_property(v) for n, v in values.items() if isinstance(v, property)},
        "enums": {n: read_members(getattr(cls, n)) for n in public if is_enum(getattr(cls, n))},
        "constants": {name: value for name, value in values.items() if isinstance(value, int)},
        "static": [name for name, value in values.items() if isinstance(value, staticmethod)],
        "protocols": [name for name in PROTOCOLS if hasattr(cls, name)],
    }
    return {key: value for key, value in described.items() if value or key in REQUIRED_KEYS}


REQUIRED_KEYS = {"attributes", "bases", "signatures"}


def describe_module(module: ModuleType) -> dict[str, object]:
    """Return the whole public API of a bindings module."""
    enums: dict[str, object] = {}
    aliases: dict[str, str] = {}
    classes: dict[str, object] = {}
    functions: dict[str, str | None] = {}
    for name in dir(module):
        value: Any = getattr(module, name)
        if name.startswith("_"):
            continue
        if is_enum(value):
            enums[name] = read_members(value)
        elif inspect.isclass(value):
            classes[name] = describe_class(value)
        elif callable(value):
            functions[name] = next(iter(read_signatures(value, name)), None)
        elif is_enum(type(value)) and hasattr(module, type(value).__name__):
            aliases[name] = f"{type(value).__name__}.{value.name}"
    return {
        "version": module.__version__,
        "enums": enums,
        "aliases": aliases,
        "classes": classes,
        "functions": functions,
    }


if __name__ == "__main__":
    json.dump(describe_module(importlib.import_module(sys.argv[1])), sys.stdout)
