"""Reports as the pipeline writes them, made up: every verdict, every kind of output."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

from trtdeploy.parity.result import (
    NoiseComparison,
    NoiseFigure,
    OutputComparison,
    OutputMetrics,
    ParityReport,
    PointResult,
    TaskMetric,
    Tolerance,
    Verdict,
)
from trtdeploy.report.document import BuildReport
from trtdeploy.report.json_document import dump_document, parse_document
from trtdeploy.report.loading import REPORT_NAME

TOLERANCE = Tolerance(0.01, 0.01, 5e-3, scaled=True, origin="recipe fp16", close_fraction=0.999)
EXACT = Tolerance(0.0, 0.0, None, scaled=False, origin="exact values must be equal")
SOURCE = "the recipe's roundings in the reference"
POINTS = ("min", "opt", "max", "batch 3", "batch independence of the candidate")


def make_output(
    name: str,
    relative_l2: float | None,
    verdict: Verdict = Verdict.PASS,
    reasons: tuple[str, ...] = (),
    **metrics: Any,
) -> OutputComparison:
    figures: dict[str, Any] = {
        "shape": (8, 84, 8400),
        "reference_dtype": "float32",
        "candidate_dtype": "float32",
        "reference_amax": 641.3,
        "relative_l2": relative_l2,
    }
    if relative_l2:
        figures |= {
            "max_abs_error": 900 * relative_l2,
            "mean_abs_error": 3 * relative_l2,
            "cosine": 1 - relative_l2**2 / 2,
            "sqnr_db": 41.2,
            "allclose_fraction": 1.0 if verdict is Verdict.PASS else 0.99871,
            "histogram": (12, 340, 5230, 61200, 310400, 42000, 8100, 3),
            "histogram_edges": tuple(range(-7, 2)),
        }
    found = OutputMetrics(**(figures | metrics))
    if relative_l2 is None:
        tolerance = EXACT if found.equal_fraction is not None else TOLERANCE
        return OutputComparison(name, verdict, reasons, found, tolerance)
    noise = NoiseComparison(
        SOURCE, 2.1e-4, (NoiseFigure("bias", relative_l2 / 2.1e-4, 4.0, "axis 1"),)
    )
    return OutputComparison(name, verdict, reasons, found, TOLERANCE, 2.1e-4, noise)


def make_point(
    point: str,
    *outputs: OutputComparison,
    optimization_profile: str = "default",
    problem: str = "",
) -> PointResult:
    shapes = {"images": (8, 3, 1280, 1280)}
    return PointResult(optimization_profile, point, shapes, 4, outputs, 0.61, 2.17, problem)


def make_parity(*points: PointResult, **fields: Any) -> ParityReport:
    defaults: dict[str, Any] = {
        "label": "emulated on CPU",
        "reference": "yolov8n.onnx",
        "candidate": "model.onnx",
        "data": "4 samples, seed 0",
        "is_synthetic": True,
    }
    return ParityReport(points=points, **(defaults | fields))


def make_mixed_parity() -> ParityReport:
    """Four outputs at five points: one suspect, one failure, one of integers, the rest passes."""
    suspect = ("17 times the noise floor, where rounding alone gives 2.1e-4",)
    failure = (
        "relative L2 error 0.0312 is above the tolerance 0.005",
        "2 elements are infinite in the candidate and finite in the reference",
    )
    points = []
    for index, point in enumerate(POINTS):
        scale = 1 + index / 5
        outputs = [
            make_output("output0", 4.1e-4 * scale),
            make_output("proto_masks", 6.4e-4 * scale),
            make_output("class_ids", None, equal_fraction=1.0, reference_dtype="int64",
                        candidate_dtype="int64", shape=(8, 300)),
            make_output("embeddings/pooled", 2.9e-4 * scale, top1_agreement=1.0,
                        reasons=("the element type changed from float32 to float16",)),
        ]  # fmt: skip
        if point == "max":
            outputs[1] = make_output("proto_masks", 3.6e-3, Verdict.SUSPECT, suspect)
            outputs[3] = make_output(
                "embeddings/pooled", 0.0312, Verdict.FAIL, failure, nonfinite_candidate=2,
                argmax_flips=3, largest_flip_gap=0.21, top1_agreement=0.906, top5_agreement=0.981,
            )  # fmt: skip
        points.append(make_point(point, *outputs))
    return make_parity(*points, notes=("the model draws no random numbers",))


def make_passing_parity() -> ParityReport:
    outputs = (make_output("output0", 4.1e-4), make_output("boxes", 0.0))
    metric = TaskMetric("top1", 0.7614, 0.7609, 0.005, Verdict.PASS)
    points = [make_point(point, *outputs) for point in POINTS[:3]]
    return make_parity(*points, task_metric=metric, label="measured on NVIDIA GeForce RTX 4090")


def make_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def make_file(name: str) -> dict[str, Any]:
    digest = make_hash(name)
    return {"file": name, "bytes": 10_834_284, "sha256": digest, "files": {name: digest}}


def make_report(parity: ParityReport | dict[str, Any] | None = None, **sections: Any) -> Any:
    """Return the content of a ``report.json`` with all its sections filled."""
    report = {
        "schema_version": 2,
        "status": "engine",
        "created": "2026-11-29T18:22:07+00:00",
        "source": {
            "file": "yolov8n.onnx", "sha256": make_hash("source"), "opset": 18, "ir_version": 8,
            "nodes": 321, "inputs": [make_tensor("images", ["batch", 3, "height", "width"])],
            "outputs": [make_tensor("output0", ["batch", 84, "anchors"])],
        },
        "typed_model": {
            **make_file("model.onnx"), "opset": 18, "ir_version": 8,
            "changes": ["inlined 2 functions"],
        },
        "engine": make_file("model.engine"),
        "profile": make_profile(),
        "optimization_profiles": [
            {
                "name": "default",
                "shapes": {"images": make_sizes([1, 3, 320, 320], [4, 3, 640, 640])},
                "values": {"size": make_sizes([8, 8], [64, 64])},
            }
        ],
        "shape_notes": ["'batch' (images axis 0), taken as batch, not given: 1/4/8 assumed"],
        "precision": make_precision(),
        "check": make_check(),
        "compile": make_compile(),
        "steps": make_steps(),
        "environment": {
            "trtdeploy": "0.1.0", "python": "3.11.7", "platform": "Linux x86_64",
            "packages": {"tensorrt_rtx": "1.7.1.116", "onnx": "1.23.2"},
        },
        "reproduce": "trtdeploy build yolov8n.onnx --profile rtx4090-fp16",
    }  # fmt: skip
    if parity is not None:
        report["parity"] = dump_document(parity) if isinstance(parity, ParityReport) else parity
    return report | sections


def make_tensor(name: str, shape: list[int | str] | None) -> dict[str, Any]:
    return {"name": name, "dtype": "float32", "shape": shape, "is_shape_tensor": False}


def make_sizes(low: list[int], high: list[int]) -> dict[str, list[int]]:
    return {"min": low, "opt": high, "max": high}


def make_profile() -> dict[str, Any]:
    return {
        "profile": {
            "name": "rtx4090-fp16", "title": "GeForce RTX 4090, FP16", "device": "rtx4090",
            "backend": "tensorrt_rtx", "recipe": "fp16", "build": {"workspace": None},
        },
        "device": {
            "name": "rtx4090", "title": "NVIDIA GeForce RTX 4090 24 GB", "kind": "geforce",
            "compute_capability": "8.9", "memory": 25769803776,
        },
        "source": "profiles/rtx4090-fp16.yaml",
        "parents": [],
        "overrides": ["build.workspace=2GiB"],
    }  # fmt: skip


def make_precision(nodes: int = 24) -> dict[str, Any]:
    low = {"dtype": "float16", "rule": "recipe", "reason": "recipe fp16"}
    kept = {
        "dtype": "float32", "rule": "KeepSoftmaxRule",
        "reason": "Softmax sums exponentials over many values",
    }  # fmt: skip
    table = {f"/model.{i}/conv/Conv": kept if i % 8 == 5 else low for i in range(nodes)}
    counts = {"float16": 0, "float32": 0}
    for node in table.values():
        counts[node["dtype"]] += 1
    constants = [
        {"name": "mask", "value": "-3.4028234663852886e+38", "action": "clamp", "limit": 65504.0,
         "reason": "it is added to scores before a softmax"},
        {"name": "val_93", "value": "-inf", "action": "keep", "limit": None, "reason": "a mask"},
    ]  # fmt: skip
    return {
        "recipe": "fp16", "counts": counts, "nodes": table, "constants": constants,
        "notes": ["'noise' draws random numbers"], "ranges_measured": False,
    }  # fmt: skip


def make_quantization(layers: int = 12, **sections: Any) -> dict[str, Any]:
    """Return a quantization of ``layers`` convolutions: the first is blocked, the last left alone.

    Every tensor is clipped at half of its largest magnitude, the first one at a tenth.
    """
    names = [f"/model.{i}/conv/Conv" for i in range(layers)]
    decisions = {name: make_decision("int8") for name in names[:-1]}
    decisions[names[-1]] = make_decision(
        None, "KeepLastLayerRule", "a last layer: no other follows"
    )
    return {
        "kind": "int8", "decisions": decisions, "notes": ["'/model.3/Add' is fused"],
        "audit": make_audit(names), "calibration": make_calibration(layers),
    } | sections  # fmt: skip


def make_decision(
    quantized: str | None, rule: str = "recipe", reason: str = "recipe int8"
) -> dict[str, Any]:
    return {"quantized": quantized, "rule": rule, "reason": reason}


def make_audit(names: list[str], **figures: Any) -> dict[str, Any]:
    def make_layer(index: int, name: str) -> dict[str, Any]:
        runs_in = "fp16" if index in {0, len(names) - 1} else "int8"
        return {
            "node": name, "op_type": "Conv", "runs_in": runs_in, "touched": True,
            "flops": 1000 * (index + 1),
            "weight_bytes": 4 * (index + 1), "obstacles": [] if index else ["zero-point"],
        }  # fmt: skip

    layers = [make_layer(index, name) for index, name in enumerate(names)]
    obstacle = {
        "kind": "zero-point", "node": names[0],
        "detail": "'x_zero_point' is 3", "remedy": "Calibrate again with symmetric INT8.",
    }  # fmt: skip
    return {
        "verdict": "Most of the work (83 % of FLOPs) runs in INT8.", "is_probably_faster": True,
        "flops_share": 0.8333, "weight_bytes_share": 0.8333, "conversions": 2, "unknown_costs": 0,
        "layers_by_type": dict(Counter(layer["runs_in"] for layer in layers)), "layers": layers,
        "obstacles": [obstacle],
    } | figures  # fmt: skip


def make_calibration(tensors: int = 12, **facts: Any) -> dict[str, Any]:
    return {
        "method": "entropy", "by_tensor": [["/model.1/*", "minmax"]], "percentile": 99.99,
        "notes": ["'/model.2/out' is always zero"], "data": [make_data()],
        "tensors": {
            f"/model.{i}/out": {
                "amax": 2.0 if i else 0.4, "largest": 4.0, "method": "entropy",
                "one_sided": i % 2 == 0,
            }
            for i in range(tensors)
        },
    } | facts  # fmt: skip


def make_data(**facts: Any) -> dict[str, Any]:
    return {
        "description": "calib.npz (32 samples)", "sha256": make_hash("calib"), "samples": 31,
        "skipped": ["calib.npz, sample 12, input 'images': 1 NaN"], "is_synthetic": False,
    } | facts  # fmt: skip


def make_finding(severity: str = "hazard", **fields: str) -> dict[str, str]:
    finding = {
        "code": "fixed-batch", "severity": severity, "affects": "engine",
        "node": "/model.22/Reshape", "op_type": "Reshape", "domain": "",
        "message": "the target shape [1, 84, -1] fixes the batch to 1",
        "remedy": "Export with a dynamic batch, or build for batch 1 only.",
    }  # fmt: skip
    return finding | fields


def make_check(*findings: dict[str, str]) -> dict[str, Any]:
    found = list(findings or [make_finding(), make_finding("note", node="", op_type="")])
    counts = {s: sum(f["severity"] == s for f in found) for s in ("blocker", "hazard", "note")}
    return {
        "model": "yolov8n.onnx", "opset": 18, "ir_version": 8, "node_count": 321,
        "backend": "tensorrt_rtx", "engine": "TensorRT-RTX 1.7.1.116", "recipe": "fp16",
        "device": "NVIDIA GeForce RTX 4090 24 GB", "asked": "shipped table", "counts": counts,
        "findings": found,
    }  # fmt: skip


def make_compile() -> dict[str, Any]:
    warning = "ModelImporter.cpp:1071: Make sure input images has Int64 binding."
    return {
        "backend": "tensorrt_rtx", "version": "1.7.1.116", "typing": "strong", "flags": ["TF32"],
        "precision": {"proven_by": "strongly typed network", "layers": {"FLOAT": 2, "HALF": 289}},
        "warnings": [warning, warning], "parse_s": 0.044, "build_s": 1.553,
    }  # fmt: skip


def make_steps(**statuses: str) -> list[dict[str, Any]]:
    seconds = {"load": 0.087, "check": 0.122, "type": 0.131, "compile": 71.76, "parity": 12.4}
    return [
        {"name": name, "status": statuses.get(name, "ok"), "seconds": spent,
         "detail": f"what {name} did", "log": []}
        for name, spent in seconds.items()
    ]  # fmt: skip


def check_report(report: Any) -> BuildReport:
    """Return a report as typed values, through the text of a file."""
    return parse_document(BuildReport, json.dumps(report).encode(), REPORT_NAME)
