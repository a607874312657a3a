"""Peak memory of whole parity checks with few and with many samples."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from benchmarks.graph_builder import Feature, GraphBuilder
from benchmarks.parity_report import MemoryResult
from benchmarks.processes import Command
from benchmarks.rounds import run_in_turn
from benchmarks.tools import PROGRAMS
from trtdeploy.config.recipe import find_recipe
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange
from trtdeploy.graph.loading import load_model
from trtdeploy.graph.saving import save_model
from trtdeploy.precision.typed_model import apply_recipe
from trtdeploy.precision.typing_options import TypingOptions

SAMPLES = (8, 64, 512)
LARGEST_BATCH = 4
"""The fewest samples fill it twice: ONNX Runtime plans the memory of a shape (its memory pattern)
when that shape runs for the second time, and takes more from then on, once."""
CHANNELS, PIXELS = 3, 128
SAMPLE_BYTES = CHANNELS * PIXELS * PIXELS * 4
"""FP32. Held all at once, 512 samples would be 101 MB, and their outputs as much again."""


def measure_memory(folder: Path, rounds: int, progress: Callable[[str], None]) -> MemoryResult:
    """Run the whole check with each number of samples in fresh processes, in turn.

    Args:
        folder: For models and samples.
        rounds: Checks with each number of samples.
        progress: Is told what happens.
    """
    progress(f"whole checks with {', '.join(map(str, SAMPLES))} samples:")
    reference, candidate = folder / "reference.onnx", folder / "candidate.onnx"
    ranges = folder / "ranges.json"
    onnx.save_model(build_conv_model(), reference)
    save_model(
        apply_recipe(load_model(reference), TypingOptions(find_recipe("fp16"))).model, candidate
    )
    ranges.write_text(json.dumps(asdict(make_ranges())), encoding="utf-8")
    commands: dict[str, Command] = {
        str(count): [
            sys.executable, "-I", PROGRAMS / "check_parity.py", reference, candidate,
            _save_samples(folder / f"{count}.npz", count), ranges,
        ]
        for count in SAMPLES
    }  # fmt: skip
    runs = run_in_turn(commands, rounds, progress)
    return MemoryResult(SAMPLE_BYTES, {int(name): tuple(found) for name, found in runs.items()})


def build_conv_model() -> ModelProto:
    """Return two convolutions with a ReLU between them; input and output are equally large."""
    graph = GraphBuilder(seed=3)
    hidden = graph.convolution(Feature("images", CHANNELS), 8, kernel=3)
    active = Feature(graph.call("Relu", hidden.name), hidden.channels)
    graph.convolution(active, CHANNELS, kernel=3)
    shape: list[int | str] = ["batch", CHANNELS, PIXELS, PIXELS]
    return graph.build("conv", ("images", shape), ("features", shape))


def make_ranges() -> OptimizationProfile:
    """Return batches from 1 to ``LARGEST_BATCH``."""
    image = (CHANNELS, PIXELS, PIXELS)
    sizes = ShapeRange(min=(1, *image), opt=(2, *image), max=(LARGEST_BATCH, *image))
    return OptimizationProfile("default", {"images": sizes})


def _save_samples(path: Path, count: int) -> Path:
    shape = (count, CHANNELS, PIXELS, PIXELS)
    images = np.random.default_rng(count).standard_normal(shape, dtype=np.float32)
    np.savez(path, images=images)
    return path
