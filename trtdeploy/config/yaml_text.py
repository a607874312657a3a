"""YAML text to plain data: no tags, no duplicate keys, no alias bombs, bounded size and depth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import yaml

from trtdeploy.core.errors import DeployProfileError

LARGEST_FILE_BYTES: Final = 1 << 20
LARGEST_DEPTH: Final = 16
LARGEST_VALUE_COUNT: Final = 20_000
"""Values in one file with every alias written out."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml_mapping(path: Path, label: str) -> dict[str, object]:
    """Read a YAML file that holds one mapping.

    Args:
        path: File to read.
        label: How messages call it.

    Raises:
        DeployProfileError: Missing, not a file, unreadable, too large, not UTF-8, empty, not a
            mapping, or YAML that ``parse_yaml`` refuses.
    """
    data = parse_yaml(_read_text(path, label), label)
    if data is None:
        raise DeployProfileError(f"{label}: the file is empty")
    if not isinstance(data, dict):
        raise DeployProfileError(f"{label}: expected 'key: value' lines, found {_describe(data)}")
    return data


def parse_yaml(text: str, label: str) -> object:
    """Return the plain data (mappings, lists, scalars) in one YAML document.

    Raises:
        DeployProfileError: Not YAML; or a tag, a duplicate or non-text key, a recursive or
            exploding alias, or nesting deeper than ``LARGEST_DEPTH``.
    """
    try:
        _check_events(text, label)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check_keys(node, label)
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise DeployProfileError(f"{label}: not valid YAML: {_explain(error)}") from error
    except ValueError as error:
        # Scalars that look like a date or a number and are none, such as 2026-13-45.
        raise DeployProfileError(f"{label}: a value cannot be read: {error}") from error


def _read_text(path: Path, label: str) -> str:
    try:
        if path.is_dir():
            raise DeployProfileError(f"{label}: this is a directory, not a YAML file")
        if path.exists() and not path.is_file():
            raise DeployProfileError(f"{label}: this is not a regular file")
        with path.open("rb") as file:
            raw = file.read(LARGEST_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise DeployProfileError(f"{label}: there is no such file") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DeployProfileError(f"{label}: cannot be read: {reason}") from error
    if len(raw) > LARGEST_FILE_BYTES:
        raise DeployProfileError(f"{label}: larger than 1 MiB, so not a profile or device file")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DeployProfileError(f"{label}: not UTF-8 text: {error}") from error


class _Census:
    """Counts values with aliases written out, before anything is built from them."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._open: list[tuple[str | None, int]] = [(None, 0)]
        self._sizes: dict[str, int] = {}

    def visit(self, event: yaml.Event) -> None:
        place = f"{self._label}, line {event.start_mark.line + 1 if event.start_mark else '?'}"
        if tag := getattr(event, "tag", None):
            short = tag.replace("tag:yaml.org,2002:", "!!")
            raise DeployProfileError(
                f"{place}: the tag {short!r} is not allowed; profiles hold plain data only"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, 1))
            if len(self._open) > LARGEST_DEPTH + 1:
                raise DeployProfileError(f"{place}: nested deeper than {LARGEST_DEPTH} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, size = self._open.pop()
            self._add(anchor, size, place)
        elif isinstance(event, yaml.AliasEvent):
            self._add(None, self._find_size(event.anchor, place), place)
        elif isinstance(event, yaml.ScalarEvent):
            self._add(event.anchor, 1, place)

    def _find_size(self, anchor: str | None, place: str) -> int:
        if anchor is None or anchor not in self._sizes:
            raise DeployProfileError(f"{place}: the alias *{anchor} has no value, or holds itself")
        return self._sizes[anchor]

    def _add(self, anchor: str | None, size: int, place: str) -> None:
        if anchor is not None:
            self._sizes[anchor] = size
        outer_anchor, outer_size = self._open[-1]
        total = outer_size + size
        if total > LARGEST_VALUE_COUNT:
            raise DeployProfileError(
                f"{place}: more than {LARGEST_VALUE_COUNT} values (aliases written out)"
            )
        self._open[-1] = (outer_anchor, total)


def _check_events(text: str, label: str) -> None:
    census = _Census(label)
    for event in yaml.parse(text, Loader=_Loader):
        census.visit(event)


def _check_keys(root: yaml.Node, label: str) -> None:
    seen: set[int] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            _check_mapping_keys([key for key, _ in node.value], label)
            pending.extend(value for _, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            pending.extend(node.value)


_KEY_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:merge")


def _check_mapping_keys(keys: list[yaml.Node], label: str) -> None:
    lines: dict[str, int] = {}
    for key in keys:
        line = key.start_mark.line + 1
        if key.tag not in _KEY_TAGS:
            raise DeployProfileError(
                f"{label}, line {line}: the key {key.value!r} is not text; put it in quotes"
            )
        if key.value in lines:
            raise DeployProfileError(
                f"{label}, line {line}: the key {key.value!r} is there twice "
                f"(first on line {lines[key.value]})"
            )
        lines[key.value] = line


def _explain(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    if mark is None or problem is None:
        return str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"


def _describe(data: object) -> str:
    kinds: Mapping[type, str] = {list: "a list", str: "text", bool: "true/false", int: "a number"}
    return kinds.get(type(data), f"a {type(data).__name__}")
