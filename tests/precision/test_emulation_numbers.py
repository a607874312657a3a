"""Emulated numbers against the ONNX reference, which computes in the types of the model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from tests.builders import BFLOAT16, FLOAT16, random_array
from tests.precision.emulated_graphs import EXACT, KINDS, OPSET, SHAPE, Step, make_graph, steps_of
from tests.precision.emulated_runs import (
    NUMPY,
    Array,
    count_units,
    emulate,
    emulate_and_run,
    run_emulated,
    run_node,
)
from tests.precision.typed_models import run_reference

FP16 = pytest.param(FLOAT16, id="float16")
BF16 = pytest.param(BFLOAT16, id="bfloat16")
# from subnormals to where sums and products overflow
SCALES = {FLOAT16: (1e-6, 1.0, 300.0, 3e4), BFLOAT16: (1e-38, 1.0, 300.0, 1e36)}

# what the reference of older releases does not run in bfloat16 (seen in 1.19, not in 1.23)
OLD_REFERENCE = tuple(int(part) for part in onnx.__version__.split(".")[:2]) < (1, 23)
REFERENCE_LACKS = {"MatMul", "Sigmoid"} if OLD_REFERENCE else set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("emulation")


def draw_feeds(code: int, seed: int) -> dict[str, Array]:
    scales = SCALES[code]
    return {
        "x": random_array(*SHAPE, seed=seed) * np.float32(scales[seed % 4]),
        "z": random_array(*SHAPE, seed=seed + 1) * np.float32(scales[seed // 4 % 4]),
    }


@pytest.mark.parametrize("code", [FP16, BF16])
@settings(max_examples=50)
@given(steps=steps_of(sorted(EXACT)), seed=st.integers(0, 1 << 16))
def test_graphs_without_sums_agree_bit_for_bit(
    code: int, folder: Path, steps: list[Step], seed: int
) -> None:
    proto = make_graph(steps, code, NUMPY[code])
    feeds = draw_feeds(code, seed)
    found = emulate_and_run(proto, feeds, folder)[0]
    np.testing.assert_array_equal(found, run_reference(proto, feeds)[0])


@pytest.mark.parametrize("code", [FP16, BF16])
@settings(max_examples=50)
@given(steps=steps_of(sorted(KINDS)), seed=st.integers(0, 1 << 16))
def test_every_node_of_any_graph_agrees(
    code: int, folder: Path, steps: list[Step], seed: int
) -> None:
    """Each node on its own operands, so that one rounding does not grow along the graph."""
    proto = make_graph(steps, code, NUMPY[code])
    feeds = draw_feeds(code, seed)
    read = {name for node in proto.graph.node for name in node.input}
    names = [name for node in proto.graph.node for name in node.output if name in read]
    path = emulate(proto, folder, observed=names)
    values = dict(zip(["y", *names], run_emulated(path, feeds), strict=True))
    values |= feeds
    values |= {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
    low = {name for name in names if values[name].dtype == np.float32}
    low |= {t.name for t in proto.graph.initializer if t.data_type == code}
    operands = {n: v.astype(NUMPY[code]) if n in low else v for n, v in values.items()}
    wide = {n: v.astype(np.float64) if n in low else v for n, v in values.items()}
    for node in proto.graph.node[:-1]:
        summed = run_node(node, {n: wide[n] for n in node.input}, OPSET)
        stored = summed
        if node.op_type not in REFERENCE_LACKS:
            stored = run_node(node, {n: operands[n] for n in node.input}, OPSET)
        for name, *expected in zip(node.output, stored, summed, strict=True):
            if name in values:
                assert_agrees(values[name], expected, code, node.op_type)


def assert_agrees(found: Array, expected: list[Array], code: int, op_type: str) -> None:
    """Bit for bit, or for sums within two units of the narrow or of the exact result.

    The reference rounds (and overflows) after each step of a sum in the narrow type, which no
    device does; and where elements cancel out, a unit is that of the largest result.
    """
    narrow, exact = expected
    off = count_units(found, narrow, code)
    if op_type in EXACT:
        assert not np.any(off), op_type
        return
    close = off <= 2
    for result in expected:
        close |= count_units(found, result, code) <= 2
        close |= distance(found, result) <= 2 * unit_of(narrow, code)
    assert np.all(close), f"{op_type}: {found} {narrow} {exact}"


def distance(found: Array, expected: Array) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(found.astype(np.float64) - expected.astype(np.float64))


def unit_of(values: Array, code: int) -> float:
    """Return the step between neighbours of the type at the largest finite value."""
    magnitudes = np.abs(values.astype(np.float64))
    largest = magnitudes[np.isfinite(magnitudes)].max(initial=0.0)
    return float(largest) * (2.0**-10 if code == FLOAT16 else 2.0**-7)
