"""``calibration.json``: nothing is lost, and hostile files are named, not obeyed."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibration.test_statistics import count, make_statistics
from trtdeploy.calibration.document import (
    LARGEST_FILE_BYTES,
    format_statistics,
    load_statistics,
    parse_statistics,
    save_statistics,
)
from trtdeploy.calibration.histogram import FINITE_BINS
from trtdeploy.calibration.histogram_text import format_counts, parse_histogram
from trtdeploy.calibration.methods import MethodChoice
from trtdeploy.config.calibration import CALIBRATION_METHODS
from trtdeploy.core.errors import InputError
from trtdeploy.core.number_formats import FP8_E4M3

CHOICE = MethodChoice("entropy", (("act", "minmax"),))


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    statistics = make_statistics()
    path = tmp_path / "calibration.json"
    save_statistics(statistics, path, CHOICE)
    loaded = load_statistics(path)
    assert loaded == statistics
    for method in CALIBRATION_METHODS:
        choice = MethodChoice(method)
        assert loaded.compute_amax(choice) == statistics.compute_amax(choice)
    assert [file.name for file in tmp_path.iterdir()] == ["calibration.json"]


def test_names_of_files_may_be_any_bytes(tmp_path: Path) -> None:
    statistics = make_statistics()
    data = replace(statistics.data[0], description="caf\udce9.npz", skipped=("\udcff, sample 1",))
    path = tmp_path / "calibration.json"
    save_statistics(replace(statistics, data=(data,)), path, CHOICE)
    loaded = load_statistics(path)
    assert loaded.data[0].description == "caf\\udce9.npz"
    assert loaded.skipped == ("\\udcff, sample 1",)


def test_people_find_what_they_look_for() -> None:
    statistics = make_statistics()
    document = json.loads(format_statistics(statistics, CHOICE, FP8_E4M3))
    assert document["schema_version"] == 1
    assert document["model_sha256"] == "a" * 64
    assert document["data"][0]["samples"] == 5
    assert document["methods"]["kind"] == "fp8"
    act, dead = document["tensors"]["act"], document["tensors"]["dead"]
    assert (act["method"], act["threshold"]) == ("minmax", act["amax"])
    assert act["amax"] == statistics.histograms["act"].largest
    assert list(act["thresholds"]) == list(CALIBRATION_METHODS)
    assert (act["count"], act["one_sided"], act["always_zero"]) == (5000, False, False)
    assert (dead["threshold"], dead["one_sided"], dead["always_zero"]) == (1.0, True, True)


def test_a_real_tensor_takes_few_kilobytes() -> None:
    values = np.random.default_rng(0).normal(size=2_000_000)
    _, text = format_counts(count(values))
    assert len(text) < 12_000


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=20))
def test_any_histogram_survives(values: list[float]) -> None:
    histogram = count(values)
    limits = (histogram.minimum, histogram.maximum) if values else (None, None)
    assert parse_histogram(*format_counts(histogram), limits) == histogram


def pack(counts: Any) -> str:
    raw = np.asarray(counts, "<i8").tobytes()
    return base64.b64encode(zlib.compress(raw)).decode()


def change_tensor(**values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document["tensors"]["act"].update(values)


def set_key(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update({key: value})


DAMAGE = {
    "no counts": (change_tensor(counts=""), "tensors.act: counts, minimum"),
    "not base64": (change_tensor(counts="?"), "tensors.act: counts are damaged"),
    "not zlib": (change_tensor(counts="AAAA"), "tensors.act: counts are damaged"),
    "bomb": (change_tensor(counts=pack([1] * (1 << 20))), "at most 32640 bins"),
    "half a number": (
        change_tensor(counts=base64.b64encode(zlib.compress(b"abc")).decode()),
        "given 3 bytes",
    ),
    "cut short": (
        change_tensor(counts=base64.b64encode(zlib.compress(bytes(800))[:-4]).decode()),
        "counts are damaged",
    ),
    "negative": (change_tensor(counts=pack([-1, 5])), "negative, too large"),
    "overflow": (change_tensor(counts=pack([2**62, 2**62, 1])), "negative, too large"),
    "zero at the end": (change_tensor(counts=pack([3, 0])), "no counts at the end"),
    "too many bins": (
        change_tensor(first_bin=FINITE_BINS - 1, counts=pack([1, 1])),
        "counts reach bin 32640",
    ),
    "bin beyond all": (change_tensor(first_bin=FINITE_BINS), "tensors.act.first_bin"),
    "another amax": (change_tensor(maximum=1e9), "not in the last filled bin"),
    "beyond fp32": (change_tensor(maximum=1e300), "not in the last filled bin"),
    "limits swapped": (change_tensor(minimum=1.0, maximum=-1.0), "contradict each other"),
    "no limits": (change_tensor(minimum=None), "contradict each other"),
    "another count": (change_tensor(count=7), "holds 5000 values, expected 7"),
    "text for a number": (change_tensor(amax="3"), "tensors.act.amax: .*given '3'"),
    "unknown key": (change_tensor(scale=1.0), "tensors.act.scale: Extra inputs"),
    "another version": (set_key("schema_version", 2), "schema version 2; this trtdeploy reads 1"),
    "no version": (lambda document: document.pop("schema_version"), "schema_version: Field req"),
    "no hash": (set_key("model_sha256", "x"), "model_sha256: String should match"),
    "too many tensors": (set_key("tensors", {str(i): {} for i in range(5000)}), "tensors"),
    "not said whether made up": (
        lambda document: document["data"][0].pop("synthetic"),
        r"data\.0\.synthetic: Field required",
    ),
    "unknown key of data": (
        lambda document: document["data"][0].update(real=True),
        r"data\.0\.real: Extra inputs",
    ),
    "text for a count": (
        lambda document: document["data"][0].update(samples="5"),
        r"data\.0\.samples: .*given '5'",
    ),
    "control characters": (set_key("\x1b[2J", 1), r"\\x1b\[2J: Extra inputs"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_named(damage: Callable[[Any], None], message: str) -> None:
    document = json.loads(format_statistics(make_statistics(), CHOICE))
    damage(document)
    with pytest.raises(InputError, match=message) as caught:
        parse_statistics(json.dumps(document).encode(), "calib.json")
    assert caught.value.message.startswith("calib.json")
    assert "\x1b" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"[" * 100_000])
def test_what_is_no_document_is_named(raw: bytes) -> None:
    with pytest.raises(InputError, match=r"^calib.json is no calibration: "):
        parse_statistics(raw, "calib.json")


def test_numbers_that_json_does_not_have_are_refused() -> None:
    text = format_statistics(make_statistics(), CHOICE)
    broken = text.replace('"percentile": 99.99', '"percentile": NaN')
    assert broken != text
    with pytest.raises(InputError, match="percentile"):
        parse_statistics(broken.encode(), "calib.json")


def test_missing_and_oversized_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_statistics(path)
    with path.open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    with pytest.raises(InputError, match="larger than 64 MiB"):
        load_statistics(path)
    with pytest.raises(InputError, match="cannot be written"):
        save_statistics(make_statistics(), tmp_path / "none" / "calibration.json", CHOICE)
