"""What quantized accuracy is measured on: data that calibrates is not the data that evaluates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from benchmarks import real_data
from benchmarks.accuracy_benchmark import AccuracyRow, make_parser, measure_recipes, render_rows
from benchmarks.accuracy_measurement import AccuracyFigures, AccuracyJudge
from benchmarks.accuracy_models import (
    AccuracyModel,
    compare_maps,
    compare_similarity,
    compare_top1,
    correlate_ranks,
)
from benchmarks.wordpiece import WordPieceTokenizer
from tests.pinning.test_finding import outlier_network, save


@pytest.mark.parametrize("make", [real_data.collect_sentences, real_data.list_files])
def test_splits_share_no_sample_and_repeat(make: object) -> None:
    assert callable(make)
    first, second = make(30, 7, "calibrate"), make(30, 7, "evaluate")
    assert len(first) == len(second) == 30
    assert not set(first) & set(second)
    assert first == make(30, 7, "calibrate")


def test_drawn_text_is_not_the_same_in_both_splits() -> None:
    pages = [real_data.draw_pages(2, 64, 96, 1, split) for split in ("calibrate", "evaluate")]
    assert pages[0].shape == (2, 64, 96, 3)
    assert pages[0].dtype == np.uint8
    assert not np.array_equal(*pages)
    lines, labels = real_data.draw_lines(12, 48, 96, 1, "evaluate")
    assert lines.shape == (12, 48, 96, 3)
    assert set(labels.tolist()) == {0, 1}


def test_edges_of_a_file_are_those_magika_reads(tmp_path: Path) -> None:
    short = tmp_path / "short"
    short.write_bytes(b"\n \tabc \n")
    edges = real_data.read_edges(short)
    assert edges.shape == (2048,)
    assert edges[:5].tolist() == [97, 98, 99, 32, 10]
    assert edges[-4:].tolist() == [9, 97, 98, 99]
    assert set(edges[5:-6].tolist()) == {256}
    long = tmp_path / "long"
    long.write_bytes(b"a" * 5000 + b"b" * 5000)
    edges = real_data.read_edges(long)
    assert edges[:1024].tolist() == [97] * 1024
    assert edges[1024:].tolist() == [98] * 1024


def test_photographs_are_parted_by_file(tmp_path: Path) -> None:
    for value in (10, 200):
        Image.new("RGB", (40, 30), (value,) * 3).save(tmp_path / f"{value}.png")
    first = real_data.crop_photos(tmp_path, 3, 8, 0, "calibrate")
    second = real_data.crop_photos(tmp_path, 3, 8, 0, "evaluate")
    assert (set(np.unique(first)), set(np.unique(second))) == ({10}, {200})
    with pytest.raises(ValueError, match="two images"):
        real_data.crop_photos(tmp_path / "..", 1, 8, 0, "evaluate")


def test_words_are_split_into_the_longest_pieces(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "un", "##aff", "##able", "cafe", ",", "##a"]
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(pieces), encoding="utf-8")
    encoded = WordPieceTokenizer(vocabulary).encode(["Unaffable, Caf\u00e9 xyz", "un"], 8)
    assert encoded["input_ids"].tolist() == [[2, 4, 5, 6, 8, 7, 1, 3], [2, 4, 3, 0, 0, 0, 0, 0]]
    assert encoded["attention_mask"].sum(axis=1).tolist() == [8, 3]
    assert not encoded["token_type_ids"].any()


def test_rank_correlation_ignores_what_keeps_the_order() -> None:
    values = np.random.default_rng(0).normal(size=50)
    assert correlate_ranks(values, np.exp(values)) == pytest.approx(1.0)
    assert correlate_ranks(values, -values) == pytest.approx(-1.0)


def test_task_figures() -> None:
    rows = {"y": np.array([[1.0, 2.0], [3.0, 0.0]])}
    assert compare_top1({}, rows, {"y": rows["y"][:, ::-1]}) == {"top-1 agreement": 0.0}
    maps = {"y": np.array([0.9, 0.8, 0.1])}
    assert compare_maps({}, maps, {"y": np.array([0.9, 0.1, 0.1])}) == {"text pixels IoU": 0.5}
    states = {"last_hidden_state": np.random.default_rng(1).normal(size=(6, 4, 8))}
    mask = {"attention_mask": np.array([[1, 1, 1, 0]] * 6)}
    spoiled = {"last_hidden_state": states["last_hidden_state"].copy()}
    spoiled["last_hidden_state"][:, 3] = 1e6  # padding has no part in a sentence
    assert compare_similarity(mask, states, spoiled)["similarity Spearman"] == pytest.approx(1.0)


def test_methods_are_compared_on_one_calibration(tmp_path: Path) -> None:
    path = save(outlier_network(), tmp_path / "outlier.onnx")

    def make(count: int, split: str) -> dict[str, np.ndarray]:
        seed = int(split == "evaluate")
        return {"x": np.random.default_rng(seed).normal(0, 1, (count, 32)).astype(np.float32)}

    subject = AccuracyModel("outlier", path, make, compare_top1, 16, 12)
    rows = list(measure_recipes(subject, ["fp16", "int8"], ["minmax", "mse"], []))
    assert [row.maker for row in rows] == ["fp16", "int8 minmax", "int8 mse"]
    assert rows[0].figures.sqnr_db["y"] > 50 > rows[1].figures.sqnr_db["y"] > 0
    assert rows[1].figures.quantized_share == pytest.approx(1.0)
    pinned = next(measure_recipes(subject, ["int8"], ["minmax"], ["fp16:m3"]))
    assert pinned.figures.sqnr_db["y"] > rows[1].figures.sqnr_db["y"] + 10
    assert AccuracyJudge(subject).measure(path).sqnr_db == {"y": float("inf")}


def test_the_table_has_a_row_per_output() -> None:
    figures = AccuracyFigures({"a": 20.0, "b": 30.5}, {"top-1 agreement": 0.5}, 0.25)
    table = render_rows([AccuracyRow("net", "int8 mse", figures)])
    assert table.count("| net") == 2
    assert table.count("25.0%") == table.count("top-1 agreement 0.5000") == 1


def test_arguments() -> None:
    given = make_parser().parse_args(["--only", "magika", "--recipe", "int8", "--pin", "fp16:a"])
    assert (given.only, given.recipe, given.pin) == (["magika"], ["int8"], ["fp16:a"])
