"""What either exporter leaves behind: an ONNX file, and what was learnt on the way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.export.pytorch.flat_module import FlatModule
from trtdeploy.export.pytorch.source import TorchSource

Axes = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class GraphRequest:
    """What an exporter is given.

    Attributes:
        source: The model with its example.
        flat: The same as a function of tensors.
        dynamic: Symbol by axis by input.
        opset: Opset to write.
        path: File to write.
    """

    source: TorchSource
    flat: FlatModule
    dynamic: Axes
    opset: int
    path: Path


@dataclass
class ExportedGraph:
    """An ONNX file as an exporter wrote it.

    Attributes:
        exporter: Name and version.
        guards: Conditions on sizes that the graph relies on, as Python texts over ``L[...]``.
        limits: Largest size by symbol, where the exporter found one.
        notes: What the user should know.
        decisions: What a trace fixed to what the example led to.
        fallback: Why another exporter, which is preferred, did not write it.
    """

    exporter: str
    guards: list[str] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    fallback: str = ""
