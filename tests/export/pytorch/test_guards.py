"""Conditions of exported programs: read as arithmetic, never executed."""

from __future__ import annotations

import pytest

from trtdeploy.core.tensors import SizeRule
from trtdeploy.export.pytorch.guards import UnreadableGuardError, evaluate_guard, tighten_rules
from trtdeploy.export.pytorch.size_ends import fit_rule

SIZES = {"x": (2, 3, 64, 96), "batch.ids": (2, 16), "pair.1": (5,)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("L['x'].size()[2] % 16 == 0", True),
        (
            "(1 + (((-1) + L['x'].size()[3]) // 2)) == (2 + 2*(((-1) + L['x'].size()[3]) // 4))",
            True,
        ),
        ("L['batch']['ids'].size()[1] <= 8", False),
        ("L['pair'][1].size()[0] == 5 and not_there == 3", None),
        ("torch.sym_max(1, L['x'].size()[2] // 16) > 1", True),
        ("1 < L['x'].size()[0] < 3 or L['x'].size()[0] == 9", True),
    ],
)
def test_guards_are_evaluated(text: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(UnreadableGuardError):
            evaluate_guard(text, lambda path, axis: SIZES[path][axis])
    else:
        assert evaluate_guard(text, lambda path, axis: SIZES[path][axis]) is expected


@pytest.mark.parametrize(
    "text",
    ["__import__('os').system('true')", "L['x'].shape[0]", "open('f')", "(lambda: 1)()", "1 +",
     "L['nothing'].size()[0] == 1", "1 // 0", "'a' * 9", "10 ** 10 ** 10", "(" * 5000],
)  # fmt: skip
def test_anything_else_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableGuardError):
        evaluate_guard(text, lambda path, axis: SIZES[path][axis])


def tighten(rule: SizeRule, size: int, *guards: str) -> SizeRule:
    found = tighten_rules({"h": rule}, guards, {"h": size}, lambda sizes: {"x": (2, sizes["h"])})
    return found["h"]


def test_steps_and_limits_come_from_guards() -> None:
    size = "L['tensors'][0].size()[1]"
    assert tighten(SizeRule("h"), 64, f"{size} % 16 == 0").multiple_of == 16
    assert tighten(SizeRule("h"), 32, f"({size} % 8) == 0") == SizeRule("h", 8, 8)
    assert tighten(SizeRule("h"), 24, f"{size} <= 512") == SizeRule("h", max=512)
    assert tighten(SizeRule("h"), 24, f"{size} >= 10", "L['x'].size()[1] < 100") == SizeRule(
        "h", 1, 10, 99
    )


def test_what_torch_says_about_ones_is_no_limit() -> None:
    assert tighten(SizeRule("h"), 24, "L['x'].size()[1] != 1", "2 <= L['x'].size()[1]") == SizeRule(
        "h"
    )


def test_what_excludes_single_sizes_is_no_limit() -> None:
    size = "L['x'].size()[1]"
    assert tighten(SizeRule("h"), 24, f"(4*({size} // 8)) != ({size} // 8)") == SizeRule("h")


def test_unreadable_guards_change_nothing() -> None:
    assert tighten(SizeRule("h", 4, 4), 24, "something(else)") == SizeRule("h", 4, 4)


@pytest.mark.parametrize(
    ("rule", "size", "good", "expected"),
    [
        (SizeRule("s"), 24, range(1, 999), SizeRule("s")),
        (SizeRule("s"), 24, range(2, 999), SizeRule("s", min=2)),
        (SizeRule("s"), 64, range(35, 999), SizeRule("s", min=35)),
        (SizeRule("s", max=66), 24, range(1, 65), SizeRule("s", max=64)),
        (SizeRule("s", max=500), 24, range(1, 26), SizeRule("s", max=25)),
        (SizeRule("s", 32, 32, 330), 128, range(96, 257), SizeRule("s", 32, 96, 256)),
        (SizeRule("s", 32, 32, 330), 128, range(32, 321), SizeRule("s", 32, 32, 330)),
        (SizeRule("s", max=99), 24, range(24, 25), SizeRule("s", min=24, max=24)),
        (SizeRule("s", max=24), 24, range(1, 25), SizeRule("s", max=24)),
    ],
)
def test_rules_shrink_to_what_holds_at_their_ends(
    rule: SizeRule, size: int, good: range, expected: SizeRule
) -> None:
    tried: list[int] = []

    def holds_at(other: int) -> bool:
        tried.append(other)
        return other in good

    assert fit_rule(rule, size, holds_at) == expected
    assert len(tried) <= 20
    assert all(rule.accepts(other) for other in tried)
