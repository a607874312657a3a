"""Parts of a model whose author turned autocast off, as pins of ONNX nodes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnx import NodeProto

from trtdeploy.graph.model import OnnxModel, walk_nodes

_STACK_KEY = "pkg.torch.onnx.stack_trace"
_DROPPED = frozenset({"Constant", "Identity"})
"""Normalisation makes them initializers or removes them; a pin of theirs would match nothing."""
GENERATED_CODE = "<eval_with_key>"
"""What PyTorch calls the file of code it generated, with a number behind it."""
_FRAMES = (
    re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)'),
    re.compile(r"^(?P<file>.+)\((?P<line>\d+)\): ", re.MULTILINE),
)
"""As the dynamo exporter writes a stack trace, and as the TorchScript exporter does."""
_WHOLE, _MUCH = 0.9, 0.5
"""Shares of a model's nodes from which pins say nothing, and from which they cost much."""


@dataclass(frozen=True)
class Fp32Region:
    """Lines of the user's code that compute in FP32 whatever autocast says.

    Attributes:
        module: Dotted path of the module whose forward they are part of.
        file: Source file; empty when only the module is known.
        first: Where the lines begin, counted from 1; 0 without a file.
        last: Where they end.
    """

    module: str
    file: str = ""
    first: int = 0
    last: int = 0

    def covers(self, file: str, line: int) -> bool:
        """Tell whether a line is part of it."""
        generated = self.file == GENERATED_CODE and file.startswith(GENERATED_CODE)
        return (generated or file == self.file) and self.first <= line <= self.last


def find_region(module: str, file: str, line: int) -> Fp32Region:
    """Return the statement at a line, a ``with`` block as a whole."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return Fp32Region(module)
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not statements:
        return Fp32Region(module)
    inner = max(statements, key=lambda node: (node.lineno, -(node.end_lineno or node.lineno)))
    return Fp32Region(module, file, inner.lineno, inner.end_lineno or inner.lineno)


def find_pins(model: OnnxModel, regions: Sequence[Fp32Region]) -> tuple[tuple[str, ...], list[str]]:
    """Return node-name patterns for regions, and notes on them for the user.

    Nodes must carry the exporter's stack traces where lines are to tell them apart; without
    those, the whole module of the region is pinned. Regions that make up the whole model are none:
    that is what the switch of unused mixed precision looks like.
    """
    nodes = [node for node in walk_nodes(model.graph) if node.op_type not in _DROPPED]
    traces = {node.name: _read_frames(node) for node in nodes}
    pinned: set[str] = set()
    notes: list[str] = []
    for region in regions:
        found = _find_nodes(traces, region)
        pinned |= found
        if not found:
            notes.append(
                f"the FP32 block in {region.module or 'the model'} left no node: nothing to pin"
            )
    share = f"autocast is turned off around {len(pinned)} of {len(nodes)} nodes"
    if len(pinned) > _WHOLE * len(nodes):
        notes.append(f"{share}, as where mixed precision is not in use: none is kept in FP32")
        return (), notes
    if len(pinned) > _MUCH * len(nodes):
        notes.append(f"{share}: all these stay in FP32, which costs speed")
    return tuple(compress_names(pinned, [node.name for node in nodes])), notes


def _find_nodes(traces: Mapping[str, list[tuple[str, int]]], region: Fp32Region) -> set[str]:
    prefix = "/".join(["", *filter(None, region.module.split(".")), ""])
    inside = {name for name in traces if name.startswith(prefix)}
    if not region.file or not any(traces.values()):
        return inside
    lines = {name for name, frames in traces.items() if any(region.covers(*f) for f in frames)}
    # the TorchScript exporter has names of its own for what a ModuleDict holds
    return lines & inside or lines


def _read_frames(node: NodeProto) -> list[tuple[str, int]]:
    text = next((e.value for e in node.metadata_props if e.key == _STACK_KEY), node.doc_string)
    found = (match for frame in _FRAMES for match in frame.finditer(text))
    return [(match["file"], int(match["line"])) for match in found]


def compress_names(chosen: set[str], names: Sequence[str]) -> list[str]:
    """Return ``/norm/*`` for folders all of whose nodes are chosen, and names for the rest."""
    patterns: list[str] = []
    left = set(chosen)
    folders = sorted({folder for name in chosen for folder in _folders(name)}, key=len)
    for folder in folders:
        members = {name for name in names if name.startswith(f"{folder}/")}
        if members <= chosen and members & left:
            patterns.append(f"{folder}/*")
            left -= members
    return patterns + [name for name in names if name in left]


def _folders(name: str) -> Iterator[str]:
    parts = name.split("/")
    for end in range(2, len(parts)):
        yield "/".join(parts[:end])
