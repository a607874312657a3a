"""``--input``, ``--dynamic`` and their relatives as text."""

from __future__ import annotations

import pytest

from trtdeploy.core.dtypes import DType
from trtdeploy.core.errors import UsageError
from trtdeploy.export.arguments import (
    parse_dynamic_arguments,
    parse_input_argument,
    parse_multiple_arguments,
    parse_settings,
    parse_size_arguments,
)
from trtdeploy.export.request import InputSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("images:float32:2x3x224x224", InputSpec("images", DType.FLOAT32, (2, 3, 224, 224))),
        ("ids:int64:2x16:0..999", InputSpec("ids", DType.INT64, (2, 16), 0, 999)),
        ("sr:int64:scalar:16000", InputSpec("sr", DType.INT64, (), 16000, 16000)),
        ("batch.image:uint8:1x8", InputSpec("batch.image", DType.UINT8, (1, 8))),
        ("serving:x:0:float16:4", InputSpec("serving:x:0", DType.FLOAT16, (4,))),
        ("t:Float32:3:-1.5..2e-1", InputSpec("t", DType.FLOAT32, (3,), -1.5, 0.2)),
    ],
)
def test_inputs(text: str, expected: InputSpec) -> None:
    assert parse_input_argument(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("images", "expected NAME:DTYPE:SHAPE"),
        ("images:float32", "expected NAME:DTYPE:SHAPE"),
        ("images:float32:2x-3", "expected NAME:DTYPE:SHAPE"),
        (":float32:2", "expected NAME:DTYPE:SHAPE"),
        ("images:float31:2x3", "no element type"),
        ("images:float32:2x0", "1 or more"),
        ("ids:int64:2:9..3", "9 is larger than 3"),
    ],
)
def test_wrong_inputs_say_what_was_expected(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        parse_input_argument(text)
    assert text in caught.value.message


def test_dynamic_axes() -> None:
    texts = ["images:0=batch,2=height,3=width", "serving:x:0=batch", "mask:"]
    assert parse_dynamic_arguments(texts) == {
        "images": {0: "batch", 2: "height", 3: "width"},
        "serving:x": {0: "batch"},
        "mask": {},
    }


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["images"], "expected NAME:AXIS=SYMBOL"),
        (["images:batch"], "expected NAME:AXIS=SYMBOL"),
        (["images:0=2x"], "expected NAME:AXIS=SYMBOL"),
        (["images:0=a,0=b"], "axis 0 is given twice"),
        (["images:0=a", "images:1=b"], "'images' is given twice"),
    ],
)
def test_wrong_dynamic_axes(texts: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        parse_dynamic_arguments(texts)


def test_multiples_and_sizes() -> None:
    assert parse_multiple_arguments(["height=32", "width=8"]) == {"height": 32, "width": 8}
    assert parse_size_arguments(["height=96,160"]) == {"height": (96, 160)}


@pytest.mark.parametrize("texts", [["height"], ["height=0"], ["height=3.5"], ["h=1", "h=2"]])
def test_wrong_multiples(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--multiple"):
        parse_multiple_arguments(texts)


@pytest.mark.parametrize("texts", [["height"], ["height=0"], ["height=96,"], ["h=1", "h=2"]])
def test_wrong_sizes(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--prove-at"):
        parse_size_arguments(texts)


def test_settings_are_json_where_they_can_be() -> None:
    texts = ["model_type=bert,num_hidden_layers=6", "sizes=[1,2],eps=1e-12,flag=true,none=None"]
    assert parse_settings(texts) == {
        "model_type": "bert", "num_hidden_layers": 6, "sizes": [1, 2], "eps": 1e-12, "flag": True,
        "none": None,
    }  # fmt: skip


@pytest.mark.parametrize("texts", [["layers"], ["=3"], ["a=1", "a=2"]])
def test_wrong_settings(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--config"):
        parse_settings(texts)
