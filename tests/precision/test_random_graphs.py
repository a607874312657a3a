"""Random small networks, typed: always valid, always close to FP32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto

from tests.builders import constant, model, op, random_array, value
from tests.precision.typed_models import (
    describe_io,
    relative_error,
    run_ort,
    run_reference,
    type_model,
)

CHANNELS, SIDE = 3, 4
SHAPE = (1, CHANNELS, SIDE, SIDE)


@dataclass
class Network:
    """A network that grows node by node; every value has the same shape."""

    draw: st.DataObject
    values: list[str] = field(default_factory=lambda: ["x", "z"])
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def pick(self) -> str:
        return self.draw.draw(st.sampled_from(self.values))

    def add(self, op_type: str, inputs: str, **attrs: object) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(op(op_type, inputs, name, **attrs))
        return name

    def keep(self, values: object, dtype: object = np.float32) -> str:
        """Return a constant, now and then one that is used already."""
        name = f"c{len(self.constants)}"
        self.constants.append(constant(name, values, dtype))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        seed = self.draw.draw(st.integers(0, 99))
        return self.keep(random_array(*shape, seed=seed, scale=scale))


def add_unary(net: Network) -> str:
    kinds = ["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Softmax", "Identity", "HardSigmoid"]
    return net.add(net.draw.draw(st.sampled_from(kinds)), net.pick())


def add_binary(net: Network) -> str:
    kind = net.draw.draw(st.sampled_from(["Add", "Sub", "Max", "Min"]))
    total = net.add(kind, f"{net.pick()} {net.pick()}")
    return net.add("Mul", f"{total} {net.keep(0.5)}")


def add_scaled(net: Network) -> str:
    return net.add("Mul", f"{net.pick()} {net.weight(CHANNELS, 1, 1, scale=0.7)}")


def add_conv(net: Network) -> str:
    weight = net.weight(CHANNELS, CHANNELS, 3, 3, scale=0.2)
    return net.add("Conv", f"{net.pick()} {weight}", pads=[1, 1, 1, 1])


def add_matmul(net: Network) -> str:
    return net.add("MatMul", f"{net.pick()} {net.weight(SIDE, SIDE, scale=0.5)}")


def add_concat(net: Network) -> str:
    joined = net.add("Concat", f"{net.pick()} {net.pick()}", axis=1)
    mixed = net.weight(CHANNELS, 2 * CHANNELS, 1, 1, scale=0.4)
    return net.add("Conv", f"{joined} {mixed}")


def add_moves(net: Network) -> str:
    flat = net.add("Reshape", f"{net.pick()} {net.keep([1, CHANNELS, -1], np.int64)}")
    turned = net.add("Transpose", flat, perm=[0, 2, 1])
    back = net.add("Transpose", turned, perm=[0, 2, 1])
    return net.add("Reshape", f"{back} {net.keep(SHAPE, np.int64)}")


def add_norm(net: Network) -> str:
    mean = net.add("ReduceMean", net.pick(), axes=[-1])
    centred = net.add("Sub", f"{net.nodes[-1].input[0]} {mean}")
    square = net.add("Mul", f"{centred} {centred}")
    variance = net.add("ReduceMean", square, axes=[-1])
    root = net.add("Sqrt", net.add("Add", f"{variance} {net.keep(0.1)}"))
    return net.add("Div", f"{centred} {root}")


def add_gate(net: Network) -> str:
    positive = net.add("Greater", f"{net.pick()} {net.keep(-9.0)}")
    return net.add("Where", f"{positive} {net.pick()} {net.pick()}")


def add_cast(net: Network) -> str:
    target = net.draw.draw(st.sampled_from([TensorProto.FLOAT, TensorProto.FLOAT16]))
    return net.add("Cast", net.add("Cast", net.pick(), to=target), to=TensorProto.FLOAT)


GROWTH: list[Callable[[Network], str]] = [
    add_unary, add_binary, add_scaled, add_conv, add_matmul, add_concat, add_moves, add_norm,
    add_gate, add_cast,
]  # fmt: skip


def grow(draw: st.DataObject) -> tuple[ModelProto, list[str]]:
    """Return a network and the names of some of its nodes."""
    net = Network(draw)
    for _ in range(draw.draw(st.integers(1, 8))):
        net.values.append(draw.draw(st.sampled_from(GROWTH))(net))
    computed = net.values[2:]
    chosen = {computed[-1], *draw.draw(st.lists(st.sampled_from(computed), max_size=2))}
    outputs = [value(name, SHAPE) for name in computed if name in chosen]
    proto = model(net.nodes, [value("x", SHAPE), value("z", SHAPE)], outputs, net.constants)
    names = [node.name for node in net.nodes if node.op_type != "Identity"]  # those go away
    return proto, draw.draw(st.lists(st.sampled_from(names), max_size=2)) if names else []


RANDOM = settings(suppress_health_check=list(HealthCheck), max_examples=50)


@RANDOM
@given(st.data())
@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_a_random_network_stays_valid_and_close(
    recipe: str, tmp_path: Path, data: st.DataObject
) -> None:
    source, pins = grow(data)
    _, typed = type_model(source, tmp_path, recipe, pins=pins)
    assert describe_io(typed) == describe_io(source)
    if recipe == "bf16":
        return
    feeds = {"x": random_array(*SHAPE, seed=1), "z": random_array(*SHAPE, seed=2)}
    for run in (run_ort, run_reference):
        for found, right in zip(run(typed, feeds), run_ort(source, feeds), strict=True):
            assert relative_error(found, right) < 0.02


@RANDOM
@given(st.data())
@pytest.mark.parametrize("recipe", ["fp16", "bf16"])
def test_a_random_network_with_narrow_inputs_and_outputs_is_valid(
    recipe: str, tmp_path: Path, data: st.DataObject
) -> None:
    source, pins = grow(data)
    _, typed = type_model(source, tmp_path, recipe, pins=pins, keep_io=False)
    names = [name for name, _ in describe_io(source)]
    assert [name for name, _ in describe_io(typed)] == names
    assert len({dtype for _, dtype in describe_io(typed)}) == 1
