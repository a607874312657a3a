"""A recipe is one entry of one table: a twin that is entered there works everywhere."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import trtdeploy
from tests.building.models import save_convnet
from tests.contract.engine_cases import WEAK_ONLY, make_inspection, run_build
from tests.contract.standin import make_trt_module
from trtdeploy.backends.installed import is_installed
from trtdeploy.building.compiling import make_compile_request
from trtdeploy.building.manifest import load_folder
from trtdeploy.cli.main import run
from trtdeploy.config import shipped
from trtdeploy.config.recipe import RECIPES, Recipe

needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)


@dataclass(frozen=True)
class Twin:
    """A copy of a shipped recipe under a name that no product file knows."""

    of: str
    recipe: Recipe
    profile: str

    def calibration(self) -> tuple[str, ...]:
        """Return the options of ``trtdeploy build`` that bring samples, where it needs some."""
        return () if self.recipe.quantized is None else ("--calib", "samples.npz")


@pytest.fixture(params=["fp16", "int8"])
def twin(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Twin:
    """Enter the twin in the one table; a model, samples and a deploy profile lie beside."""
    recipe = replace(RECIPES[request.param], name=f"{request.param}-twin")
    monkeypatch.setitem(RECIPES, recipe.name, recipe)
    monkeypatch.chdir(tmp_path)
    save_convnet(tmp_path / "net.onnx")
    images = np.random.default_rng(1).normal(0, 1, (6, 3, 64, 64)).astype(np.float32)
    np.savez("samples.npz", images=images)
    profile = tmp_path / f"rtx4090-{recipe.name}.yaml"
    profile.write_text(f"extends: rtx4090-{request.param}\nrecipe: {recipe.name}\n")
    return Twin(request.param, recipe, str(profile))


@needs_rtx
def test_a_twin_builds_proves_parity_and_reports(
    twin: Twin, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("-p", twin.profile, *twin.calibration(), "-o", "out")
    assert run(["build", "net.onnx", *options]) == 0
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["precision"]["recipe"] == twin.recipe.name
    assert manifest["compile"]["request"]["recipe"] == twin.recipe.name
    assert manifest["compile"]["precision"]["layers"]["INT8" if "int8" in twin.of else "HALF"] > 0
    assert manifest["parity"]["verdict"] == "pass"
    assert Path("out/model.engine").read_bytes()[:4] == b"vtrt"
    assert twin.recipe.name in Path("out/report.html").read_text()
    assert twin.recipe.name in Path("out/junit.xml").read_text()
    capsys.readouterr()
    assert run(["report", "out"]) == 0
    assert twin.recipe.name in capsys.readouterr().out


def test_parity_of_a_foreign_model_expects_what_the_twin_does(twin: Twin) -> None:
    """The candidate is not known to be ours: its expectation is made from the recipe again."""
    options = ("-p", twin.profile, *twin.calibration(), "--prepare-only", "-o", "out")
    assert run(["build", "net.onnx", *options]) == 0
    report = trtdeploy.check_parity("out", "net.onnx")
    entries = [entry for point in report.points for entry in point.outputs]
    assert f"recipe {twin.recipe.name}, values" in {entry.tolerance.origin for entry in entries}
    sources = {entry.noise.source for entry in entries if entry.noise is not None}
    assert f"emulated {twin.recipe.name} of the unmodified reference" in sources


def test_a_twin_is_checked(twin: Twin, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "net.onnx", "-p", twin.profile]) == 0
    assert twin.recipe.name in capsys.readouterr().out


def test_the_command_line_knows_a_twin(twin: Twin, capsys: pytest.CaptureFixture[str]) -> None:
    base = f"rtx4090-{twin.of}"
    assert run(["profiles", base, "--set", f"recipe={twin.recipe.name}"]) == 0
    assert f"recipe: {twin.recipe.name}" in capsys.readouterr().out
    assert run(["profiles", base, "--set", f"recipe={twin.recipe.name[:-1]}"]) == 2
    assert f"Did you mean '{twin.recipe.name}'?" in capsys.readouterr().err
    Path("without.yaml").write_text("device: rtx-4090\nbackend: tensorrt_rtx\n")
    assert run(["profiles", "without.yaml"]) == 3
    assert twin.recipe.name in capsys.readouterr().err


def test_a_shipped_profile_of_a_twin_is_listed(
    twin: Twin,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    ours = shutil.copytree(shipped.find_shipped_folder("device").parent, tmp_path / "profiles")
    shutil.copy(twin.profile, ours)
    monkeypatch.setattr(shipped, "_CANDIDATES", (ours,))
    assert run(["profiles"]) == 0
    name, lines = Path(twin.profile).stem, capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith(name))
    assert row.split()[1] == twin.recipe.name


def test_a_device_without_the_precision_is_named(
    twin: Twin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["profiles", "orin-fp16", "--set", "recipe=fp8"]) == 2
    assert f"use {twin.recipe.name}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("version", WEAK_ONLY)
def test_weak_typing_takes_the_flags_of_a_twin(twin: Twin, version: str, tmp_path: Path) -> None:
    options = ("-p", f"orin-{twin.of}", "--set", f"recipe={twin.recipe.name}", "--set")
    command = ("build", "net.onnx", *options, "typing=weak", *twin.calibration())
    assert run([*command, "--prepare-only", "--no-parity", "-o", "out"]) == 0
    request = make_compile_request(load_folder(tmp_path / "out"))
    assert request.weak_flags == RECIPES[twin.of].weak_flags
    trt = make_trt_module(version)
    trt.script["EngineInspector.get_engine_information"] = make_inspection("Int8", "Half")
    flags = run_build(
        trt, tmp_path, typing="weak", recipe=request.spec.recipe, weak_flags=request.weak_flags
    ).result.flags
    assert set(request.weak_flags or ()) <= set(flags)


PRECISIONS_ONLY = {
    "core/dtypes.py": "labels of element types",
    "backends/onnxruntime/session.py": "element types of ONNX Runtime",
    "backends/compiler/precision_proof.py": "types as TensorRT spells them",
    "config/combination.py": "precisions of pins, of ONNX Runtime's kernels and of a DLA",
    "config/compute_capability.py": "precisions of GPUs",
    "config/deploy_profile.py": "precisions of pins",
    "config/recipe.py": "the table",
    "core/number_formats.py": "8-bit types",
    "building/compiling.py": "a precision of the device",
    "precision/pins.py": "precisions of pins",
    "precision/audit/layers.py": "what a layer runs in",
    "precision/audit/report.py": "what a layer runs in",
    "precision/audit/expected_speed.py": "what a layer runs in",
    "precision/quantization/planning.py": "the precision of a pin",
    "precision/value_variants.py": "suffixes of values by element type",
    "report/page/precision_map.py": "element types",
    "report/page/quantization_view.py": "what a layer runs in",
}
"""Files where a word that is also a recipe's name means something else, and what."""


def parse_product() -> Iterator[tuple[str, ast.Module]]:
    root = Path(trtdeploy.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_no_other_file_lists_recipes() -> None:
    found = {
        file
        for file, tree in parse_product()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in RECIPES
    }
    assert found == set(PRECISIONS_ONLY)


def is_about_recipes(node: ast.AST) -> bool:
    return bool(re.search(r"recipes?(\[.*\])?(\.name)?$", ast.unparse(node), re.IGNORECASE))


def test_nothing_is_compared_with_the_name_of_a_recipe() -> None:
    found = [
        f"{file}:{node.lineno}: {ast.unparse(node)}"
        for file, tree in parse_product()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(map(is_about_recipes, (node.left, *node.comparators)))
        and any(isinstance(part, ast.Constant) and part.value in RECIPES for part in ast.walk(node))
    ]
    assert found == []
