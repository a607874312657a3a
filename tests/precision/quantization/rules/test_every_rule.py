"""Every rule of quantization is in use and has a test of its own."""

from __future__ import annotations

from pathlib import Path

from trtdeploy.precision.quantization import planning

FOLDER = Path(planning.__file__).parent / "rules"
RULES = {path.stem for path in FOLDER.glob("*.py")} - {"__init__", "rule", "flow"}


def test_every_rule_is_in_use() -> None:
    assert {type(r).__module__.rsplit(".", 1)[-1] for r in planning.make_rules()} == RULES


def test_every_rule_has_a_test() -> None:
    tested = {path.stem.removeprefix("test_") for path in Path(__file__).parent.glob("test_*.py")}
    assert tested >= RULES
