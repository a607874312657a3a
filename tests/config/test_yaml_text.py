"""YAML text: plain data in, one clear error for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest

from trtdeploy.config.yaml_text import load_yaml_mapping, parse_yaml
from trtdeploy.core.errors import DeployProfileError


def test_plain_data_is_read() -> None:
    text = "a: 1\nb: [1, two, null]\nc: {N: 1.5}\n"
    assert parse_yaml(text, "t") == {"a": 1, "b": [1, "two", None], "c": {"N": 1.5}}


def test_anchor_may_be_reused() -> None:
    assert parse_yaml("a: &x {min: 1}\nb: *x\nc: {<<: *x, max: 2}", "t") == {
        "a": {"min": 1},
        "b": {"min": 1},
        "c": {"min": 1, "max": 2},
    }


BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{previous}'] * 10)}]\n"
    for previous, name in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: !!python/object/apply:os.system [echo]", "'!!python/object/apply:os.system'"),
        ("a: !mine 1", "the tag '!mine' is not allowed"),
        ("a: 1\na: 2", "line 2: the key 'a' is there twice (first on line 1)"),
        ("a: {b: 1, b: 2}", "the key 'b' is there twice"),
        ("a: [{b: 1, b: 2}]", "the key 'b' is there twice"),
        ("1: x", "the key '1' is not text"),
        ("no: x", "the key 'no' is not text"),
        ("? [a]\n: 1", "is not text"),
        (BOMB, "more than 20000 values"),
        ("a: &a [*a]", "the alias *a has no value, or holds itself"),
        ("a: *b", "the alias *b has no value"),
        ("[" * 500, "nested deeper than"),
        ("[" * 100_000, "my.yaml"),
        ("{a: " * 50_000, "nested deeper than"),
        ("a: b: c", "not valid YAML: line 1, column 5"),
        ("a: 1\n---\nb: 2", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("a: 2026-13-45", "a value cannot be read"),
        ("a: " + "9" * 5000, "a value cannot be read"),
    ],
)
def test_everything_else_is_one_clear_error(text: str, expected: str) -> None:
    with pytest.raises(DeployProfileError) as caught:
        parse_yaml(text, "my.yaml")
    assert expected in caught.value.message
    assert caught.value.message.startswith("my.yaml")


def test_tag_is_never_executed(tmp_path: Path) -> None:
    proof = tmp_path / "executed"
    with pytest.raises(DeployProfileError):
        parse_yaml(f"a: !!python/object/apply:pathlib.Path.touch [{proof}]", "t")
    assert not proof.exists()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b"# nothing\n", "the file is empty"),
        (b"- a\n- b\n", "expected 'key: value' lines, found a list"),
        (b"just text", "found text"),
        (b"\xff\xfe\x00", "not UTF-8"),
        (b"a: 1\n" + b"#" * (1 << 20), "larger than 1 MiB"),
    ],
)
def test_wrong_file_is_one_clear_error(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(content)
    with pytest.raises(DeployProfileError, match=expected):
        load_yaml_mapping(path, "p.yaml")


def test_directory_and_missing_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DeployProfileError, match="this is a directory"):
        load_yaml_mapping(tmp_path, "d")
    with pytest.raises(DeployProfileError, match="there is no such file"):
        load_yaml_mapping(tmp_path / "x.yaml", "x.yaml")
    with pytest.raises(DeployProfileError, match="cannot be read"):
        load_yaml_mapping(tmp_path / ("x" * 5000), "x")


def test_device_node_is_not_read() -> None:
    with pytest.raises(DeployProfileError, match="not a regular file"):
        load_yaml_mapping(Path("/dev/zero"), "zero")


def test_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("a: 1")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Permissions do not stop root, who runs many CI jobs.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(DeployProfileError, match="cannot be read: Permission denied"):
        load_yaml_mapping(path, "p.yaml")


def test_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert load_yaml_mapping(path, "p.yaml") == {"a": 1}
