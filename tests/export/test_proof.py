"""The proof of a written file: it must fail wherever the file is not its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.builders import constant, model, op, random_array, save, value
from trtdeploy.core.errors import CheckFailedError, UsageError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.proof import ProofSample, Reference, prove_file
from trtdeploy.export.proof_sizes import choose_proof_points

Array = np.ndarray[Any, Any]


def make_sample(sizes: Mapping[str, int], function: Callable[[Array], Array]) -> ProofSample:
    x = random_array(sizes["batch"], sizes["width"], seed=sizes["width"])
    return ProofSample(sizes, {"x": x}, {"y": function(x)})


def sample_two(function: Callable[[Array], Array]) -> list[ProofSample]:
    points = ({"batch": 1, "width": 4}, {"batch": 3, "width": 6})
    return [make_sample(point, function) for point in points]


def write(folder: Path, *nodes: Any, constants: Any = ()) -> Path:
    inputs, outputs = [value("x", ("batch", "width"))], [value("y", ("batch", "width"))]
    return save(model(nodes, inputs, outputs, constants), folder / "m.onnx")


def test_a_file_that_computes_the_same_is_proven(tmp_path: Path) -> None:
    path = write(tmp_path, op("Relu", "x", "y"))
    samples = sample_two(lambda x: np.maximum(x, 0))
    proof = prove_file(path, samples, rtol=1e-4, reference=Reference("numpy"))
    assert proof.status == "proven"
    assert proof.max_error == 0
    assert proof.batch_independent is True
    assert [point.sizes for point in proof.points] == [sample.sizes for sample in samples]


def test_other_numbers_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, op("Relu", "x", "y"))
    with pytest.raises(CheckFailedError, match=r"batch=1, width=4, output 'y' .* differs"):
        prove_file(path, sample_two(lambda x: x), rtol=1e-4, reference=Reference("numpy"))


def test_what_rounding_explains_is_accepted(tmp_path: Path) -> None:
    path = write(tmp_path, op("Identity", "x", "y"))
    samples = sample_two(lambda x: x * np.float32(1.001))
    asked: list[ProofSample] = []

    def run_others(sample: ProofSample) -> list[dict[str, Array]]:
        asked.append(sample)
        return [{"y": sample.expected["y"] * np.float64(1.0002)}]

    reference = Reference("numpy", run_others=run_others)
    assert prove_file(path, samples, rtol=1e-4, reference=reference).max_error > 1e-4
    assert len(asked) == 2
    with pytest.raises(CheckFailedError, match=r"differs .* instead of .* at \[0, \d\]"):
        prove_file(path, sample_two(lambda x: x * 2), rtol=1e-4, reference=reference)


def test_a_baked_size_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        op("Reshape", "x two", "r", "/neck/Reshape"),
        op("Identity", "r", "y"),
        constants=[constant("two", [-1, 4], np.int64)],
    )
    samples = sample_two(lambda x: x)
    with pytest.raises(CheckFailedError, match="shape"):
        prove_file(path, samples, rtol=1e-4, reference=Reference("numpy"))


def test_a_node_that_fails_at_a_size_is_named_with_the_symbol(tmp_path: Path) -> None:
    path = write(
        tmp_path, op("Add", "x four", "y", "/head/Add"), constants=[constant("four", [0.0] * 4)]
    )
    with pytest.raises(CheckFailedError, match=r"because of 'width'.*/head/Add"):
        prove_file(
            path,
            sample_two(lambda x: x),
            rtol=1e-4,
            reference=Reference(
                "numpy", {"batch": 2, "width": 4}, lambda sizes: make_sample(sizes, lambda x: x)
            ),
        )


def test_mixed_samples_are_seen(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        op("ReduceMean", "x", "m", axes=[0], keepdims=1),
        op("Sub", "x m", "y"),
    )
    samples = sample_two(lambda x: x - x.mean(0, keepdims=True))
    proof = prove_file(path, samples, rtol=1e-4, reference=Reference("numpy"))
    assert proof.batch_independent is False


def test_a_file_that_fails_at_the_example_already_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, op("Add", "x five", "y"), constants=[constant("five", [0.0] * 5)])
    with pytest.raises(CheckFailedError, match="at the sizes of the example already") as caught:
        prove_file(
            path,
            sample_two(lambda x: x),
            rtol=1e-4,
            reference=Reference(
                "numpy", {"batch": 2, "width": 4}, lambda sizes: make_sample(sizes, lambda x: x)
            ),
        )
    assert "because of" not in caught.value.message
    assert capfd.readouterr().err == "", "ONNX Runtime says it a second time"


def test_samples_that_only_the_file_mixes_are_a_difference(tmp_path: Path) -> None:
    path = write(tmp_path, op("ReduceMean", "x", "m", axes=[0], keepdims=1), op("Sub", "x m", "y"))

    def subtract_mean(x: Array) -> Array:
        return x - x.mean(0, keepdims=True)

    def run(feeds: Mapping[str, Array], kept: float) -> dict[str, Array]:
        x = feeds["x"]
        return {"y": subtract_mean(x) if len(x) > 1 else x * np.float32(kept)}

    samples = sample_two(subtract_mean)
    mixed = Reference("numpy", run=lambda feeds: run(feeds, 0))
    assert prove_file(path, samples, rtol=1e-4, reference=mixed).batch_independent is False
    with pytest.raises(CheckFailedError, match="at batch=1, width=6, output 'y'"):
        prove_file(path, samples, rtol=1e-4, reference=Reference("numpy", run=lambda f: run(f, 1)))


RULES = {"height": SizeRule("height", 32, 32), "sequence": SizeRule("sequence", max=16)}


def test_proof_sizes_of_small_symbols_differ_within_their_rules() -> None:
    rules = {"batch": SizeRule("batch", 2, 2), "n": SizeRule("n", max=4)}
    points = choose_proof_points({"n": 3, "batch": 2, "m": 3}, rules, {})
    assert [list(point) for point in points] == [["n", "batch", "m"]] * 2
    for point in points:
        assert len(set(point.values())) == 3
        assert all(rule.accepts(point[symbol]) for symbol, rule in rules.items())


def test_proof_sizes_differ_from_the_example_and_from_each_other() -> None:
    example = {"batch": 2, "height": 64, "width": 64, "sequence": 16}
    first, second = choose_proof_points(example, RULES, {})
    assert (first["batch"], second["batch"]) == (1, 3)
    for symbol in ("height", "width", "sequence"):
        assert len({first[symbol], second[symbol], example[symbol]}) == 3
    for point in (first, second):
        assert RULES["height"].accepts(point["height"])
        assert RULES["sequence"].accepts(point["sequence"])
        assert point["height"] != point["width"]


def test_stated_proof_sizes_are_taken_and_checked() -> None:
    points = choose_proof_points({"batch": 2, "height": 64}, RULES, {"height": (96, 128, 160)})
    assert [point["height"] for point in points] == [96, 128, 160]
    with pytest.raises(UsageError, match="multiples of 32"):
        choose_proof_points({"height": 64}, RULES, {"height": (100,)})
    with pytest.raises(UsageError, match="no such dynamic size"):
        choose_proof_points({"height": 64}, RULES, {"depth": (1,)})


def test_fixed_models_are_proven_once() -> None:
    assert choose_proof_points({}, {}, {}) == [{}]
