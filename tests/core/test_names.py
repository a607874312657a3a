from __future__ import annotations

import pytest

from trtdeploy.core.names import suggest_name


@pytest.mark.parametrize(
    ("given", "valid", "expected"),
    [
        ("orin-fp61", ["orin-fp16", "h100-fp8"], "Did you mean 'orin-fp16'?"),
        ("zzz", ["b", "a"], "Valid: 'a', 'b'."),
        ("zzz", [], "There is nothing to choose from."),
        ("zzz", [f"n{i:02}" for i in range(14)], " and 2 more."),
    ],
)
def test_suggestions(given: str, valid: list[str], expected: str) -> None:
    assert suggest_name(given, valid).endswith(expected)


def test_a_name_that_occurs_twice_is_listed_once() -> None:
    assert suggest_name("zzz", iter(["a", "a"])) == "Valid: 'a'."
