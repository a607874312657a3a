"""The shipped tables, and their agreement with the real parser."""

from __future__ import annotations

import pytest

from trtdeploy.preflight.operator_table import (
    OperatorStatus,
    load_baseline_table,
    load_operator_table,
)
from trtdeploy.preflight.target import CheckTarget, parse_version

SUPPORTED, UNSUPPORTED = OperatorStatus.SUPPORTED, OperatorStatus.UNSUPPORTED
UNLISTED = OperatorStatus.UNLISTED


@pytest.mark.parametrize(
    ("version", "operator", "status"),
    [
        ("8.6.2", "Conv", SUPPORTED),
        ("8.6.2", "LayerNormalization", SUPPORTED),
        ("8.6.2", "DeformConv", UNSUPPORTED),
        ("8.6.2", "Gelu", UNLISTED),
        ("10.0", "DeformConv", UNSUPPORTED),
        ("10.1", "DeformConv", SUPPORTED),
        ("10.3.0", "STFT", UNSUPPORTED),
        ("10.13.3.9", "STFT", SUPPORTED),
        ("10.3.0", "RMSNormalization", UNLISTED),
        ("11.4.0", "RMSNormalization", SUPPORTED),
        ("11.4.0", "QLinearConv", UNSUPPORTED),
        ("10", "STFT", SUPPORTED),
        (None, "Attention", SUPPORTED),
    ],
)
def test_table_knows_when_an_operator_arrived(
    version: str | None, operator: str, status: OperatorStatus
) -> None:
    assert load_operator_table(CheckTarget("tensorrt", version)).status_of(operator) is status


@pytest.mark.parametrize(
    ("version", "limit"), [("8.6", 17), ("10.3", 20), ("10.7", 22), ("10.16.2", 24), ("11.4", 25)]
)
def test_table_knows_the_documented_opset(version: str, limit: int) -> None:
    assert load_operator_table(CheckTarget("tensorrt", version)).max_opset == limit


def test_tables_do_not_contradict_themselves() -> None:
    for backend in ("tensorrt", "tensorrt_rtx"):
        table = load_operator_table(CheckTarget(backend))
        assert not table.supported & table.unsupported
        assert not table.supported & table.needs_plugin


def test_baseline_runs_its_own_operators() -> None:
    baseline = load_baseline_table()
    assert "FastGelu" in baseline.contrib["com.microsoft"]
    assert "SimplifiedLayerNormalization" in baseline.contrib[""]
    assert not baseline.without_kernel & baseline.contrib["com.microsoft"]


@pytest.mark.parametrize(
    ("text", "numbers"), [("10.3.0.30", (10, 3, 0, 30)), ("11", (11,)), ("1.7rc1", (1,)), ("", ())]
)
def test_versions_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parse_version(text) == numbers


def test_rtx_table_agrees_with_the_installed_parser() -> None:
    trt = pytest.importorskip("tensorrt_rtx", reason="TensorRT-RTX is not installed")
    table = load_operator_table(CheckTarget("tensorrt_rtx"))
    if not table.source.startswith(
        f"OnnxParser.supports_operator of TensorRT-RTX {trt.__version__}"
    ):
        pytest.skip(f"the table was made with another version than {trt.__version__}")
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    claimed = table.supported | table.needs_plugin | table.plugins
    assert {name for name in claimed if not parser.supports_operator(name)} == set()
    assert {name for name in table.unsupported if parser.supports_operator(name)} == set()
