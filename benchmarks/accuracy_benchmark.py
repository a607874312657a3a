"""Quantized accuracy on real-looking data: every calibration method, every recipe, one table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.accuracy_measurement import AccuracyFigures, AccuracyJudge
from benchmarks.accuracy_models import SEED, AccuracyModel, list_models
from benchmarks.environments import ROOT
from benchmarks.tables import render_table
from trtdeploy.calibration.calibrating import CalibrationRequest, calibrate_model
from trtdeploy.calibration.methods import MethodChoice
from trtdeploy.calibration.statistics import CalibrationStatistics
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.config.recipe import RECIPES, Recipe
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.graph.hashing import hash_model
from trtdeploy.graph.index import build_index
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.quantization.planning import plan_quantization
from trtdeploy.precision.quantization.preparation import prepare_for_quantization
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions


@dataclass(frozen=True)
class AccuracyRow:
    """One candidate of one model.

    Attributes:
        model: Its name.
        maker: Who made the candidate, and how: ``int8 entropy``.
        figures: What it reaches.
    """

    model: str
    maker: str
    figures: AccuracyFigures


def measure_recipes(
    model: AccuracyModel, recipes: Sequence[str], methods: Sequence[str], pins: Sequence[str]
) -> Iterator[AccuracyRow]:
    """Calibrate once per recipe, then yield what each method reaches."""
    judge = AccuracyJudge(model)
    for name in recipes:
        recipe = RECIPES[name]
        source = load_model(model.path)
        statistics = None if recipe.quantized is None else _calibrate(model, recipe)
        for method in methods if statistics is not None else ("",):
            amax = None
            if statistics is not None and recipe.quantized is not None:
                choice = MethodChoice(method)
                amax = statistics.compute_amax(choice, recipe.quantized)
            typed = apply_recipe(source, TypingOptions(recipe, pins=pins, amax=amax))
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "candidate.onnx"
                save_model(typed.model, path)
                yield AccuracyRow(model.name, f"{name} {method}".strip(), judge.measure(path))


def _calibrate(model: AccuracyModel, recipe: Recipe) -> CalibrationStatistics:
    source = load_model(model.path)
    prepared = prepare_for_quantization(source, recipe)
    samples = model.make_samples(model.calibrating, "calibrate")
    sizes = {name: (1, *values.shape[1:]) for name, values in samples.items()}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "samples.npz"
        np.savez(file, **samples)
        return calibrate_model(
            CalibrationRequest(
                model=prepared,
                model_sha256=hash_model(source),
                measured=plan_quantization(build_index(prepared), recipe).measured,
                optimization_profile=OptimizationProfile(
                    "data", {name: ShapeRange(s, s, s) for name, s in sizes.items()}
                ),
                data=(file,),
            )
        )


def render_rows(rows: Sequence[AccuracyRow]) -> str:
    """Return a Markdown table."""
    cells = []
    for row in rows:
        found = row.figures
        share = "" if found.quantized_share is None else f"{found.quantized_share:.1%}"
        task = ", ".join(f"{name} {value:.4f}" for name, value in found.task.items())
        for output, value in found.sqnr_db.items():
            cells.append((row.model, row.maker, output[:18], f"{value:.1f}", task, share))
            task = share = ""
    return render_table(("model", "made by", "output", "SQNR dB", "task", "8-bit FLOPs"), cells)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of this program."""
    parser = argparse.ArgumentParser(prog="quantized_accuracy.py", description=__doc__)
    add = parser.add_argument
    add("--zoo", type=Path, default=ROOT / "models" / "downloads", help="default: %(default)s")
    add("--images", type=Path, help="folder of photographs, for --network")
    add("--network", action="append", default=[], metavar="NAME=FILE", help="of one image input")
    add("--only", action="append", metavar="MODEL", help="default: all that are there")
    add("--recipe", action="append", choices=sorted(RECIPES), help="default: int8")
    add("--method", action="append", choices=CALIBRATION_METHODS, help="default: all")
    add("--pin", action="append", default=[], metavar="PATTERN", help="as trtdeploy build has it")
    add("--seed", type=int, default=SEED, help="of the samples; default: %(default)s")
    add("--json", action="store_true", help="print JSON instead of Markdown")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit status."""
    given = make_parser().parse_args(arguments)
    networks = {name: Path(file) for name, file in (text.split("=", 1) for text in given.network)}
    models = list_models(given.zoo, given.images, networks, given.seed)
    rows = []
    for model in models:
        if given.only and model.name not in given.only:
            continue
        started = time.perf_counter()
        recipes, methods = given.recipe or ["int8"], given.method or CALIBRATION_METHODS
        for row in measure_recipes(model, recipes, methods, given.pin):
            rows.append(row)
            took = time.perf_counter() - started
            print(f"{took:7.1f} s  {row.model}  {row.maker}", file=sys.stderr)
    if not rows:
        print(f"no model in {given.zoo}: try trtdeploy models fetch", file=sys.stderr)
        return 1
    print(json.dumps([asdict(row) for row in rows], indent=2) if given.json else render_rows(rows))
    return 0
