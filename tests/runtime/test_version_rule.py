"""Which TensorRT runs an engine of which TensorRT."""

from __future__ import annotations

import pytest

from trtdeploy.runtime.version_rule import (
    explain_version_conflict,
    is_same_version,
    matches_header,
    parse_version,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.6.1", (8, 6, 1)),
        ("10.14.1.48.post1", (10, 14, 1, 48)),
        ("10.3.0.30+jetpack", (10, 3, 0, 30)),
        ("unknown", ()),
        ("", ()),
    ],
)
def test_versions_are_numbers(text: str, expected: tuple[int, ...]) -> None:
    assert parse_version(text) == expected


EXACT, LATER, MAJORS = "exactly the version", "later versions only", "8 to 10 and from 10 to 11"


@pytest.mark.parametrize(
    ("built", "running", "plain", "compatible"),
    [
        ("10.3.0", "10.3.0", None, None),
        ("10.3.0.30", "10.3.0", None, None),
        ("10.3.0.30", "10.3.0.26", EXACT, LATER),
        ("10.3.0", "10.7.0", EXACT, None),
        ("10.7.0", "10.3.0", EXACT, LATER),
        ("8.6.1", "10.3.0", EXACT, None),
        ("10.16.1.11", "11.4.0.106", EXACT, None),
        ("8.6.1", "11.0.0.114", EXACT, MAJORS),
        ("11.0.0.114", "10.16.1.11", EXACT, LATER),
        ("10.3.0", "8.6.1", EXACT, LATER),
        ("11.0.0.114", "12.0.0", EXACT, MAJORS),
        ("unknown", "10.3.0", EXACT, LATER),
    ],
)
def test_the_rule(built: str, running: str, plain: str | None, compatible: str | None) -> None:
    for expected, is_compatible in ((plain, False), (compatible, True)):
        found = explain_version_conflict(built, running, version_compatible=is_compatible)
        assert (found is None) == (expected is None), found
        assert expected is None or expected in str(found)


def test_headers_hold_one_byte_per_part() -> None:
    assert matches_header("10.13.3.9", "10.13.3.9")
    assert matches_header("10.3.0", "10.3.0.26")
    assert matches_header("11.0.0.300", "11.0.0.44")
    assert not matches_header("10.3.0", "10.4.0.0")
    assert not matches_header("", "10.4.0.0")
    assert not is_same_version("", "")
