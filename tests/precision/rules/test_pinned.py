from __future__ import annotations

import pytest

from tests.builders import model, op, value
from tests.precision.rule_runs import find_kept
from trtdeploy.core.errors import UsageError
from trtdeploy.precision.rules.pinned import KeepPinnedRule

MODEL = model(
    [
        op("Relu", "x", "a", "/layer.0/act[1]"),
        op("Relu", "a", "b", "/layer.1/act"),
        op("Softmax", "b", "c", "/head/softmax"),
        op("Exp", "c", "y", "/head/画像"),
    ],
    [value("x")],
    [value("y")],
)


@pytest.mark.parametrize(
    ("pattern", "kept"),
    [
        ("/layer.1/act", ["/layer.1/act"]),
        ("/layer.0/act[1]", ["/layer.0/act[1]"]),
        ("/layer.*", ["/layer.0/act[1]", "/layer.1/act"]),
        ("/layer.[12]/act", ["/layer.1/act"]),
        ("*画像", ["/head/画像"]),
        ("op:Relu", ["/layer.0/act[1]", "/layer.1/act"]),
        ("op:*max", ["/head/softmax"]),
        ("*", ["/head/softmax", "/head/画像", "/layer.0/act[1]", "/layer.1/act"]),
    ],
)
def test_patterns(pattern: str, kept: list[str]) -> None:
    found = find_kept(KeepPinnedRule([pattern]), MODEL)
    assert sorted(found) == kept
    assert found[kept[0]] == f"pinned to FP32 by {pattern!r}"


def test_several_patterns_add_up() -> None:
    assert len(find_kept(KeepPinnedRule(["op:Exp", "/head/*"]), MODEL)) == 2


def test_no_patterns_keep_nothing() -> None:
    assert not find_kept(KeepPinnedRule([]), MODEL)


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("/head/sofmax", "Did you mean '/head/softmax'?"),
        ("op:Sofmax", "Did you mean 'op:Softmax'?"),
        ("/HEAD/softmax", "'/head/softmax'"),
        ("op:nothing at all", "'op:Exp', 'op:Relu', 'op:Softmax'"),
    ],
)
def test_a_pattern_that_matches_nothing_is_an_error(pattern: str, hint: str) -> None:
    with pytest.raises(UsageError, match="matches no node") as info:
        find_kept(KeepPinnedRule([pattern]), MODEL)
    assert hint in info.value.hint
