"""What an export leaves in the file's metadata, also when the file is hostile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import chain, in_memory, loaded
from trtdeploy.core.errors import ModelFileError
from trtdeploy.core.tensors import SizeRule
from trtdeploy.graph.export_facts import (
    KEEP_FP32_KEY,
    SIZES_KEY,
    read_pins,
    read_size_rules,
    write_export_facts,
)

RULES = (SizeRule("height", 32, 64), SizeRule("sequence", max=512))


def test_facts_survive_the_file(tmp_path: Path) -> None:
    model = in_memory(chain(["Relu"]))
    model.proto.metadata_props.add(key="author", value="me")
    write_export_facts(model, (SizeRule("old"),), ("/old/*",))
    write_export_facts(model, RULES, ("/norm/*",), {"source": "timm:x"})
    again = loaded(model.proto, tmp_path)
    assert read_size_rules(again) == RULES
    assert read_pins(again) == ("/norm/*",)
    assert [entry.key for entry in again.proto.metadata_props].count(SIZES_KEY) == 1
    assert again.proto.metadata_props[0].value == "me"


def test_a_file_without_them_says_nothing() -> None:
    model = in_memory(chain(["Relu"]))
    assert read_size_rules(model) == ()
    assert read_pins(model) == ()


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"h": 3}', '{"h": {"multiple_of": 0}}', '{"h": {"multiple_of": 1.5}}',
     '{"h": {"min": true}}', '{"h": {"step": 2}}', '{"h": {"multiple_of": 32, "max": 16}}',
     "[" * 20_000],
)  # fmt: skip
def test_unreadable_sizes_are_an_error_that_names_the_entry(text: str) -> None:
    model = in_memory(chain(["Relu"]))
    model.proto.metadata_props.add(key=SIZES_KEY, value=text)
    with pytest.raises(ModelFileError, match=SIZES_KEY):
        read_size_rules(model)


@pytest.mark.parametrize("text", ["{}", '"x"', "[3]", '[""]', "nonsense"])
def test_unreadable_pins_are_an_error_that_names_the_entry(text: str) -> None:
    model = in_memory(chain(["Relu"]))
    model.proto.metadata_props.add(key=KEEP_FP32_KEY, value=text)
    with pytest.raises(ModelFileError, match=KEEP_FP32_KEY):
        read_pins(model)
