from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trtdeploy.core.units import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1GiB", 1 << 30),
        (" 512 MiB ", 512 << 20),
        ("2GB", 2 * 10**9),
        ("1.5kib", 1536),
        ("7", 7),
        (4096, 4096),
        ("0B", 0),
    ],
)
def test_sizes(text: str | int, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1GiB", "1 elephants", "1e3", "1GiB 2", True])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a byte size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (10_307_921, "9.83 MiB"),
        (1020 << 20, "1020 MiB"),
        (3 << 30, "3 GiB"),
        (5 << 40, "5 TiB"),
        (5000 << 40, "5000 TiB"),
    ],
)
def test_formatting(count: int, text: str) -> None:
    assert format_bytes(count) == text


@given(st.integers(0, 1 << 50))
def test_a_formatted_size_reads_back_to_three_digits(count: int) -> None:
    assert parse_bytes(format_bytes(count)) == pytest.approx(count, rel=0.006)
