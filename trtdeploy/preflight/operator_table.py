"""Which operators an engine and the baseline have, from the data shipped with trtdeploy."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib import resources
from typing import Any

from trtdeploy.preflight.target import CheckTarget, parse_version

_ANY_MINOR = 99
"""A version without a minor number, such as "10", stands for the newest of its major."""


class OperatorStatus(Enum):
    """What is known about one operator on one engine."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    NEEDS_PLUGIN = "needs a plugin"
    """The parser knows the operator but imports it through a plugin that is not shipped."""
    UNLISTED = "unlisted"
    """The newest table that was seen does not say."""


@dataclass(frozen=True)
class OperatorTable:
    """Operators of one engine.

    Attributes:
        source: Where the data comes from.
        supported: Names the engine has.
        unsupported: Names the engine is known not to have.
        needs_plugin: Names that only work with a plugin that is not part of the engine.
        plugins: Operators outside ONNX that the engine imports.
        min_opset: Oldest operator set the engine documents; 0 when it says nothing.
        max_opset: Newest operator set the engine documents; None when it says nothing.
    """

    source: str
    supported: frozenset[str]
    unsupported: frozenset[str]
    needs_plugin: frozenset[str]
    plugins: frozenset[str]
    min_opset: int = 0
    max_opset: int | None = None

    def status_of(self, operator: str) -> OperatorStatus:
        """Return what is known about a standard operator."""
        if operator in self.needs_plugin:
            return OperatorStatus.NEEDS_PLUGIN
        if operator in self.supported:
            return OperatorStatus.SUPPORTED
        if operator in self.unsupported:
            return OperatorStatus.UNSUPPORTED
        return OperatorStatus.UNLISTED


@dataclass(frozen=True)
class BaselineTable:
    """What ONNX Runtime on a CPU runs.

    Attributes:
        title: ``ONNX Runtime`` with the version the data was measured with.
        min_opset: Oldest operator set with kernels.
        max_opset: Newest operator set that loads.
        max_ir: Newest file format that loads.
        unsupported: Standard operators without a CPU kernel.
        contrib: Operators of other domains with a CPU kernel, by domain. The empty domain holds
            operators that ONNX Runtime puts into the standard domain though ONNX has none such.
        without_kernel: Operators of ``com.microsoft`` that only other devices run.
    """

    title: str
    min_opset: int
    max_opset: int
    max_ir: int
    unsupported: frozenset[str]
    contrib: dict[str, frozenset[str]]
    without_kernel: frozenset[str]


@lru_cache(maxsize=1)
def _load_data() -> dict[str, Any]:
    text = resources.files(__package__).joinpath("operator_support.json").read_text("utf-8")
    return dict(json.loads(text))


@lru_cache(maxsize=1)
def load_baseline_table() -> BaselineTable:
    """Return what the baseline runs."""
    data = _load_data()["onnxruntime"]
    contrib = {domain: frozenset(names) for domain, names in data["contrib"].items()}
    return BaselineTable(
        title=f"ONNX Runtime {data['version']}",
        min_opset=data["min_opset"],
        max_opset=data["max_opset"],
        max_ir=data["max_ir"],
        unsupported=frozenset(data["unsupported"]),
        contrib=contrib | {"": frozenset(data["extra"])},
        without_kernel=frozenset(data["contrib_without_kernel"]),
    )


@lru_cache(maxsize=32)
def load_operator_table(target: CheckTarget) -> OperatorTable:
    """Return the operators of a TensorRT target.

    Without a version the newest data of the backend is used.
    """
    if target.backend == "tensorrt_rtx":
        return _read_measured(_load_data()["tensorrt_rtx"])
    return _read_recorded(_load_data()["tensorrt"], target.version)


def _read_measured(data: dict[str, Any]) -> OperatorTable:
    needs_plugin = frozenset(data["needs_plugin"])
    return OperatorTable(
        source=data["source"],
        supported=frozenset(data["supported"]) - needs_plugin,
        unsupported=frozenset(data["unsupported"]),
        needs_plugin=needs_plugin,
        plugins=frozenset(data["plugins"]),
    )


def _read_recorded(data: dict[str, Any], version: tuple[int, ...]) -> OperatorTable:
    wanted = version or parse_version(data["newest_table"])
    if len(wanted) == 1:
        wanted = (*wanted, _ANY_MINOR)
    supported: set[str] = set()
    later: set[str] = set()
    for first, names in data["since"].items():
        (supported if parse_version(first) <= wanted else later).update(names)
    limits = [limit for first, limit in data["max_opset"] if parse_version(first) <= wanted]
    return OperatorTable(
        source=data["source"],
        supported=frozenset(supported),
        unsupported=frozenset(data["unsupported"]) | (later & set(data["refused_before"])),
        needs_plugin=frozenset(),
        plugins=frozenset(data["plugins"]),
        min_opset=data["min_opset"],
        max_opset=limits[-1] if limits else None,
    )
