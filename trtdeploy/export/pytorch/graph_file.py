"""What either exporter leaves behind: an ONNX file, and what was learnt on the way."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class ExportedGraph:
    """An ONNX file as an exporter wrote it.

    Attributes:
        exporter: Its name and PyTorch's version, as in ``dynamo, PyTorch 2.14.1``.
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
