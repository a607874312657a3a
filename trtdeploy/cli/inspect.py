"""``trtdeploy inspect``."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer

from trtdeploy.cli import options
from trtdeploy.cli.output import OutputFormat, format_rows, sink
from trtdeploy.core.tensors import format_shape
from trtdeploy.core.units import format_bytes


def inspect(
    path: Annotated[
        Path,
        typer.Argument(metavar="FILE", readable=False, help="ONNX file, engine, or output folder."),
    ],
    output: options.Output = OutputFormat.HUMAN,
) -> None:
    """Say what a file is and what it was made from.

    Knows ONNX files, plans of TensorRT and TensorRT-RTX, Ultralytics' prefixed engines, and the
    folders that 'trtdeploy build' writes. Nothing is executed or deserialised.
    """
    from trtdeploy import api

    facts = api.inspect(path)
    render = {"onnx": _render_onnx, "engine": _render_engine}.get(facts["kind"], _render_folder)
    sink.data(render(facts), facts)


def _render_onnx(facts: dict[str, Any]) -> str:
    operators = ", ".join(f"{name} {count}" for name, count in facts["operators"].items())
    return format_rows(
        [
            ("kind", "ONNX model"),
            ("opset", f"{facts['opset']} (IR {facts['ir_version']})"),
            ("producer", facts["producer"]),
            ("inputs", _render_tensors(facts["inputs"])),
            ("outputs", _render_tensors(facts["outputs"])),
            ("nodes", facts["nodes"]),
            ("operators", textwrap.fill(operators, 66)),
            ("size", format_bytes(facts["bytes"])),
        ]
    )


def _render_engine(facts: dict[str, Any]) -> str:
    return format_rows(
        [
            ("kind", f"engine of {facts['product']} {facts['version']}"),
            ("GPUs", ", ".join(facts["compute_capabilities"])),
            ("prefix", facts["prefix"]),
            ("size", format_bytes(facts["bytes"])),
            ("metadata", "\n".join(f"{k}: {v}" for k, v in facts["metadata"].items())),
        ]
    )


def _render_folder(facts: dict[str, Any]) -> str:
    source, engine, plan = facts["source"], facts["engine"], facts.get("plan")
    chosen = facts["deploy_profile"]
    return format_rows(
        [
            ("kind", "output folder of trtdeploy"),
            ("status", facts["status"]),
            ("files", "" if facts["is_intact"] else "MISSING OR CHANGED since they were built"),
            ("created", facts["created"]),
            ("source", f"{source.get('file')} (sha256 {str(source.get('sha256'))[:12]})"),
            ("profile", f"{chosen.get('name')}: {chosen.get('recipe')} on {facts['device']}"),
            (
                "precision",
                ", ".join(f"{n} nodes {t}" for t, n in (facts["precision"] or {}).items()),
            ),
            (
                "engine",
                f"{engine['file']}, {format_bytes(engine['bytes'])}" if engine else "none yet",
            ),
            ("plan", f"{plan['product']} {plan['version']}" if plan else None),
            ("shapes", _render_shapes(facts["optimization_profiles"])),
        ]
    )


def _render_tensors(tensors: list[dict[str, Any]]) -> str:
    rows = []
    for tensor in tensors:
        mark = " (its values decide shapes)" if tensor["is_shape_tensor"] else ""
        shape = format_shape(tensor["shape"])
        rows.append(f"{tensor['name']}: {tensor['dtype']} {shape}{mark}")
    return "\n".join(rows)


def _render_shapes(profiles: list[dict[str, Any]]) -> str:
    rows = []
    for entry in profiles:
        for name, table in entry["shapes"].items():
            points = [format_shape(table[point]) for point in ("min", "opt", "max")]
            rows.append(f"{name}: {points[0] if len(set(points)) == 1 else ' / '.join(points)}")
    return "\n".join(rows)
