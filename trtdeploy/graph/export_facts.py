"""What an export knew about a model, kept in the ONNX file's own ``metadata_props``.

Three keys, each JSON text; other tools may write them too:

* ``trtdeploy.sizes``: ``{"height": {"multiple_of": 32, "min": 32, "max": null}}``, by symbol.
* ``trtdeploy.keep_fp32``: ``["/encoder/norm/*"]``, node-name patterns, FP32 in every recipe.
* ``trtdeploy.export``: how the file was made and proven, for people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from trtdeploy.core.errors import ModelFileError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.graph.model import OnnxModel
from trtdeploy.graph.onnx_defects import LARGEST_SIZE

SIZES_KEY: Final = "trtdeploy.sizes"
KEEP_FP32_KEY: Final = "trtdeploy.keep_fp32"
EXPORT_KEY: Final = "trtdeploy.export"

_FIELDS: Final = frozenset({"multiple_of", "min", "max"})


def read_size_rules(model: OnnxModel) -> tuple[SizeRule, ...]:
    """Return what the file says about the sizes of its symbols; empty when it says nothing.

    Raises:
        ModelFileError: The entry is not of the form above.
    """
    found = _read_json(model, SIZES_KEY, {})
    if not isinstance(found, dict):
        raise _explain(model, SIZES_KEY, found)
    return tuple(_read_rule(model, symbol, entry) for symbol, entry in found.items())


def _read_rule(model: OnnxModel, symbol: str, entry: object) -> SizeRule:
    if not isinstance(entry, dict) or not entry.keys() <= _FIELDS:
        raise _explain(model, SIZES_KEY, {symbol: entry})
    step, lowest, highest = entry.get("multiple_of", 1), entry.get("min", 1), entry.get("max")
    sizes = [step, lowest, *([] if highest is None else [highest])]
    if any(type(size) is not int or not 1 <= size <= LARGEST_SIZE for size in sizes):
        raise _explain(model, SIZES_KEY, {symbol: entry})
    rule = SizeRule(symbol, step, lowest, highest)
    if not rule.accepts(rule.nearest(lowest)):
        raise _explain(model, SIZES_KEY, {symbol: entry})
    return rule


def read_pins(model: OnnxModel) -> tuple[str, ...]:
    """Return the node-name patterns that the model's author keeps in FP32.

    Raises:
        ModelFileError: The entry is no list of texts.
    """
    found = _read_json(model, KEEP_FP32_KEY, [])
    if not isinstance(found, list) or not all(isinstance(text, str) and text for text in found):
        raise _explain(model, KEEP_FP32_KEY, found)
    return tuple(found)


def write_export_facts(
    model: OnnxModel,
    rules: Iterable[SizeRule] = (),
    pins: Iterable[str] = (),
    export: Mapping[str, Any] | None = None,
) -> None:
    """Replace the entries above in ``model``; what there is nothing to say about is left out."""
    entries = {
        SIZES_KEY: {rule.symbol: rule.to_dict() for rule in rules},
        KEEP_FP32_KEY: list(pins),
        EXPORT_KEY: dict(export or {}),
    }
    kept = [entry for entry in model.proto.metadata_props if entry.key not in entries]
    del model.proto.metadata_props[:]
    model.proto.metadata_props.extend(kept)
    for key, value in entries.items():
        if value:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
            model.proto.metadata_props.add(key=key, value=text)


def _read_json(model: OnnxModel, key: str, default: object) -> object:
    text = next((e.value for e in model.proto.metadata_props if e.key == key), None)
    if text is None:
        return default
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        raise _explain(model, key, text) from None
    return found


def _explain(model: OnnxModel, key: str, found: object) -> ModelFileError:
    return ModelFileError(
        f"{model.path}: its metadata entry {key!r} cannot be read: {str(found)[:120]!r}",
        hint="Export the model again, or remove the entry with the onnx package.",
    )
