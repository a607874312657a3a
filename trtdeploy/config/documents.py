"""Configuration as plain nested data: merging, overrides, and who said what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trtdeploy.config.yaml_text import LARGEST_DEPTH, parse_yaml
from trtdeploy.core.errors import DeployProfileError, UsageError

KeyPath = tuple[str | int, ...]

SET_LABEL = "--set"

_KEY = r'(?:"[^"]+"|[^."=\s]+)'
_OVERRIDE = re.compile(rf"^\s*({_KEY}(?:\.{_KEY})*)\s*=(.*)$", re.DOTALL)
_PLAIN_KEY = re.compile(r'^[^."=\s]+$')


@dataclass(frozen=True)
class Document:
    """Nested data from one place.

    Attributes:
        label: How messages call the place: a file name or ``--set``.
        folder: What relative paths inside refer to.
        data: The content.
    """

    label: str
    folder: Path
    data: Mapping[str, object]

    def locate(self, path: KeyPath) -> str:
        """Return ``orin-fp16.yaml: build.workspace`` or ``--set build.workspace``."""
        return f"{self.label}{' ' if self.label == SET_LABEL else ': '}{format_key_path(path)}"


@dataclass
class MergedDocument:
    """Several documents laid over each other; later ones win, mappings merge, lists replace."""

    data: dict[str, object] = field(default_factory=dict)
    _origins: dict[KeyPath, Document] = field(default_factory=dict)

    def add(self, document: Document) -> None:
        """Lay one more document on top."""
        self.data = self._merge(self.data, document.data, document, ())

    def find_origin(self, path: KeyPath) -> Document | None:
        """Return the document that last set the value at ``path`` or around it."""
        for length in range(len(path), 0, -1):
            if origin := self._origins.get(path[:length]):
                return origin
        return None

    def _merge(
        self, below: object, above: Mapping[str, object], document: Document, path: KeyPath
    ) -> dict[str, object]:
        merged = dict(below) if isinstance(below, Mapping) else {}
        for key, value in above.items():
            here = (*path, key)
            self._origins[here] = document
            if isinstance(value, Mapping):
                merged[key] = self._merge(merged.get(key), value, document, here)
            else:
                merged[key] = value
        return merged


def parse_override(text: str) -> Document:
    """Return the document behind ``--set build.workspace=2GiB``.

    The value is YAML (``true``, ``2GiB``, ``[8.9, 12.0]``, ``{min: 1}``); a key that holds dots
    or spaces goes in double quotes: ``shapes.inputs."serving.default".min=[1, 3]``.

    Raises:
        UsageError: Not of the form ``key=value``, or the value is no YAML that profiles allow.
    """
    match = _OVERRIDE.match(text)
    if match is None:
        raise UsageError(
            f"--set {text!r}: expected KEY=VALUE", hint="For example: --set build.workspace=2GiB"
        )
    keys = [key.strip('"') for key in re.findall(_KEY, match.group(1))]
    label = f"{SET_LABEL} {match.group(1)}"
    if len(keys) > LARGEST_DEPTH:
        raise UsageError(f"{label}: more than {LARGEST_DEPTH} levels")
    try:
        value = parse_yaml(match.group(2), label)
    except DeployProfileError as error:
        raise UsageError(error.message) from error
    for key in reversed(keys):
        value = {key: value}
    assert isinstance(value, dict)
    return Document(label=SET_LABEL, folder=Path.cwd(), data=value)


def format_key_path(path: Sequence[str | int]) -> str:
    """Return ``build.workspace``, ``profiles[0]."a.b"``: what ``--set`` would take."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
            continue
        text += ("." if text else "") + (part if _PLAIN_KEY.match(part) else f'"{part}"')
    return text
