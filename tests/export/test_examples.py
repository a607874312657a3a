"""models/examples: every file is named in the README, and every model there runs."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "models" / "examples").glob("*.py"))


def test_every_example_is_in_the_readme() -> None:
    text = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
    assert len(EXAMPLES) == 4
    assert [path.stem for path in EXAMPLES if path.stem not in text] == []


@pytest.mark.pytorch
@pytest.mark.parametrize(
    ("name", "shape"), [("small_classifier", (2, 10)), ("small_encoder", (2, 32))]
)
def test_an_example_runs_on_its_own_inputs(name: str, shape: tuple[int, ...]) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed here")
    model, example = importlib.import_module(f"models.examples.{name}").make()
    assert tuple(model(**example).shape) == shape
