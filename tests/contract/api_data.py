"""The recorded Python API of each TensorRT version: what the JSON file holds, and its loader."""

import gc
import gzip
import json
from functools import cache
from pathlib import Path
from typing import Final, TypedDict, cast

from .regenerate_api import DISTRIBUTIONS

DATA_FILE: Final = Path(__file__).with_name("trt_api_by_version.json.gz")
VERSIONS: Final = tuple(DISTRIBUTIONS)
"""Oldest first; TensorRT-RTX last."""


class PropertyApi(TypedDict):
    """The types of one property, as pybind11 writes them."""

    get: str | None
    """What reading gives; None for a write-only property."""
    set: str | None
    """What may be assigned; None for a read-only property."""


class _RequiredClassApi(TypedDict):
    attributes: list[str]
    """Every public name, inherited ones included."""
    bases: list[str]
    """The base classes in the order of the MRO, without object."""
    signatures: dict[str, str]
    """Method name to pybind11's signature text; ``__init__`` only where it can be called."""


class ClassApi(_RequiredClassApi, total=False):
    """One class; a key with nothing in it is left out of the file."""

    overloads: dict[str, list[str]]
    """The real signatures of a method whose entry in `signatures` is ``(*args, **kwargs)``."""
    properties: dict[str, PropertyApi]
    enums: dict[str, dict[str, int]]
    """Enums nested in the class, such as ``Logger.Severity``."""
    constants: dict[str, int]
    static: list[str]
    protocols: list[str]
    """Which of the special methods with a meaning to a caller exist, such as ``__len__``."""


class ModuleApi(TypedDict):
    """The public API of one version of the ``tensorrt`` module."""

    version: str
    enums: dict[str, dict[str, int]]
    """Enum name to its members, in the order of their definition."""
    aliases: dict[str, str]
    """Module attribute to the enum member that it names, such as float32 to DataType.FLOAT."""
    classes: dict[str, ClassApi]
    functions: dict[str, str | None]
    """Module function to its signature; None for one that is written in Python."""


@cache
def _load_all() -> dict[str, ModuleApi]:
    data = json.loads(gzip.decompress(DATA_FILE.read_bytes()))
    gc.freeze()  # or every collection walks through it, and stand-ins are made of cycles
    return cast("dict[str, ModuleApi]", data)


def load_api(version: str) -> ModuleApi:
    """Return the API of one of `VERSIONS`; the returned data is shared, so don't change it."""
    versions = _load_all()
    if version not in versions:
        raise ValueError(f"no API was recorded for {version!r}; there is {', '.join(versions)}")
    return versions[version]


def format_label(version: str) -> str:
    """Return how an error message names a version: ``TensorRT 10.3.0``, ``TensorRT-RTX 1.7.1``."""
    family, _, number = version.rpartition("-")
    return f"TensorRT-{family.upper()} {number}" if family else f"TensorRT {number}"
