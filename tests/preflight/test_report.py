"""The report as data."""

from __future__ import annotations

import json

from tests.builders import in_memory
from tests.preflight import models
from trtdeploy.config.recipe import RECIPES
from trtdeploy.preflight.checking import check_model
from trtdeploy.preflight.finding import Severity
from trtdeploy.preflight.target import CheckTarget

TARGET = CheckTarget("tensorrt_rtx", "1.7.1", RECIPES["fp16"], "GeForce RTX 4090")


def test_report_is_plain_data_and_most_severe_comes_first() -> None:
    report = check_model(in_memory(models.string_branch()), target=TARGET)
    content = json.loads(json.dumps(report.to_dict()))
    assert content["engine"] == "TensorRT-RTX 1.7.1"
    assert content["device"] == "GeForce RTX 4090"
    assert content["counts"] == {"blocker": 3, "hazard": 0, "note": 0}
    first = content["findings"][0]
    assert set(first) == {
        "code", "severity", "affects", "node", "op_type", "domain", "message", "remedy",
    }  # fmt: skip
    assert first["affects"] == "engine"


def test_findings_are_sorted_and_counted_by_severity() -> None:
    proto = models.random_noise()
    proto.graph.input.extend(models.unused_input().graph.input[1:])
    proto.graph.node[1].op_type = "Bernoulli"
    del proto.graph.node[1].input[1:]
    report = check_model(in_memory(proto), target=TARGET)
    order = list(Severity)
    ranks = [order.index(finding.severity) for finding in report.findings]
    assert ranks == sorted(ranks)
    assert report.findings == report.blockers + report.hazards + report.notes
    assert report.counts == {"blocker": 1, "hazard": 2, "note": 1}
