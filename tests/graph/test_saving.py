from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from tests.builders import (
    chain,
    constant,
    external_tensor,
    loaded,
    model,
    op,
    random_array,
    save,
    value,
)
from trtdeploy.config.recipe import RECIPES
from trtdeploy.core.errors import ModelFileError, UsageError
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

WIDTH = 40


def two_layers() -> ModelProto:
    return model(
        [op("MatMul", "x w1", "h"), op("Relu", "h", "r"), op("MatMul", "r w2", "y")],
        [value("x", ("N", WIDTH))],
        [value("y", ("N", WIDTH))],
        [
            constant("w1", random_array(WIDTH, WIDTH, seed=1)),
            constant("w2", random_array(WIDTH, WIDTH, seed=2)),
        ],
    )


def run(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": random_array(2, WIDTH)})[0]


def test_a_large_model_gets_a_data_file_beside_it(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    path = tmp_path / "out.onnx"
    save_model(found, path, single_file_bytes=1000)
    structure = onnx.load(path, load_external_data=False)
    for tensor in structure.graph.initializer:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert tensor.data_location == TensorProto.EXTERNAL
        assert entries["location"] == "out.onnx.data"
        assert int(entries["offset"]) % 4096 == 0
    assert path.stat().st_size < 1000
    assert np.array_equal(run(path), run(found.path))
    onnx.checker.check_model(path, full_check=True)


def test_a_small_model_is_one_file(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    save_model(found, tmp_path / "out.onnx")
    assert {path.name for path in tmp_path.iterdir()} == {"model.onnx", "out.onnx"}
    assert np.array_equal(run(tmp_path / "out.onnx"), run(found.path))


def test_the_limit_counts_structure_and_weights(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    save_model(found, tmp_path / "whole.onnx")
    size = (tmp_path / "whole.onnx").stat().st_size
    save_model(found, tmp_path / "split.onnx", single_file_bytes=size - 200)
    assert (tmp_path / "split.onnx.data").exists()
    save_model(found, tmp_path / "joined.onnx", single_file_bytes=size)
    assert not (tmp_path / "joined.onnx.data").exists()


def test_a_model_without_large_weights_never_gets_a_data_file(tmp_path: Path) -> None:
    save_model(loaded(chain(["Relu"]), tmp_path), tmp_path / "out.onnx", single_file_bytes=0)
    assert not (tmp_path / "out.onnx.data").exists()


def test_narrowed_weights_are_narrowed_in_the_data_file_too(tmp_path: Path) -> None:
    typed = apply_recipe(loaded(two_layers(), tmp_path), TypingOptions(RECIPES["fp16"]))
    path = tmp_path / "out.onnx"
    save_model(typed.model, path, single_file_bytes=1000)
    weights = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    assert np.array_equal(weights["w2_fp16"], random_array(WIDTH, WIDTH, seed=2).astype(np.float16))


def test_saving_is_repeatable_and_changes_nothing(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    before = found.proto.SerializeToString(deterministic=True)
    save_model(found, tmp_path / "a.onnx")
    save_model(found, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert found.proto.SerializeToString(deterministic=True) == before


def test_the_source_cannot_be_written_over(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    before = found.path.read_bytes()
    (tmp_path / "link.onnx").symlink_to(found.path)
    for target in (found.path, tmp_path / "link.onnx"):
        with pytest.raises(UsageError, match="holds weights of the model"):
            save_model(found, target)
    assert found.path.read_bytes() == before


def test_the_sources_data_file_cannot_be_written_over(tmp_path: Path) -> None:
    save_model(loaded(two_layers(), tmp_path), tmp_path / "big.onnx", single_file_bytes=0)
    found = load_model(tmp_path / "big.onnx")
    before = (tmp_path / "big.onnx.data").read_bytes()
    with pytest.raises(UsageError, match=r"big\.onnx\.data holds weights"):
        save_model(found, tmp_path / "big.onnx", single_file_bytes=0)
    assert (tmp_path / "big.onnx.data").read_bytes() == before


def test_weights_that_disappeared_are_an_error(tmp_path: Path) -> None:
    found = loaded(two_layers(), tmp_path)
    found.path.unlink()
    with pytest.raises(ModelFileError, match="cannot be read"):
        save_model(found, tmp_path / "out.onnx")


TYPE_IT = """
import resource, sys
from pathlib import Path
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.config.recipe import RECIPES
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
typed = apply_recipe(load_model(sys.argv[1]), TypingOptions(RECIPES["fp16"]))
save_model(typed.model, Path(sys.argv[2]), single_file_bytes=int(sys.argv[3]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def sparse_model(folder: Path, rows: int, columns: int) -> Path:
    """Write ``y = x @ w`` whose weight is a hole in a file, with two ones at its ends."""
    with (folder / "w.bin").open("wb") as file:
        file.write(np.float32(1).tobytes())
        file.seek(rows * columns * 4 - 4)
        file.write(np.float32(1).tobytes())
    proto = model(
        [op("MatMul", "x w", "y")],
        [value("x", ("N", rows))],
        [value("y", ("N", columns))],
        [external_tensor("w", [rows, columns], location="w.bin")],
    )
    return save(proto, folder / "model.onnx")


def measure_peak_growth(source: Path, target: Path, single_file_bytes: int) -> int:
    """Return by how many bytes the peak memory of a process grew while it typed ``source``."""
    command = [sys.executable, "-c", TYPE_IT, source, target, str(single_file_bytes)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


@pytest.mark.parametrize("single_file_bytes", [0, 1 << 31], ids=["data_file", "one_file"])
def test_memory_does_not_grow_with_the_weights(single_file_bytes: int, tmp_path: Path) -> None:
    source, target = sparse_model(tmp_path, 8192, 8192), tmp_path / "out" / "typed.onnx"
    target.parent.mkdir()
    growth = measure_peak_growth(source, target, single_file_bytes)
    assert growth < 120 << 20, f"typing 256 MiB of weights took {growth >> 20} MiB"
    written = sum(path.stat().st_size for path in target.parent.iterdir())
    assert written == pytest.approx(8192 * 8192 * 2, rel=0.001)


@pytest.mark.slow
def test_a_model_beyond_the_protobuf_limit_is_typed(tmp_path: Path) -> None:
    rows, columns = 24_000, 24_000  # 2.15 GiB, of which 8 bytes are on the disk
    source, target = sparse_model(tmp_path, rows, columns), tmp_path / "out" / "typed.onnx"
    target.parent.mkdir()
    growth = measure_peak_growth(source, target, (1 << 31) - (1 << 24))
    assert growth < 120 << 20, f"typing 2.15 GiB of weights took {growth >> 20} MiB"
    assert target.stat().st_size == pytest.approx(rows * columns * 2, rel=0.001)
    onnx.checker.check_model(target, full_check=True)
    target.unlink()
