"""The page: self-contained, well-formed, escaped, and complete."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import pytest

from tests.report import fabricated
from tests.report.fabricated import check_report
from trtdeploy.parity.result import Verdict
from trtdeploy.report.number_text import TIMES
from trtdeploy.report.page.html import render_html

VOID = {"meta", "link", "br"}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 7 * 7 }}{% raw %}",
    "&amp;lt;b&gt;",
    "\x00\x1b[31mred\x9b\u202egpj.exe",
    "模型/вывод/مخرج/出力",
    "x" * 100_000,
    "</style></svg></title>",
)


class Page(HTMLParser):
    """Collects what tests ask about, and fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        assert len(values) == len(attrs), f"an attribute of <{tag}> is there twice"
        self.tags[tag] += 1
        self.attributes.append((tag, values))
        self.ids += [values["id"]] if values.get("id") else []
        self.links += [str(values[key]) for key in ("src", "href", "data") if key in values]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def render(parity: Any = None, **sections: Any) -> tuple[str, Page]:
    text = render_html(check_report(fabricated.make_report(parity, **sections)))
    return text, Page(text)


def poison(report: Any, text: str) -> Any:
    """Return a report whose every free text is ``text``, keys included."""
    poisoned = _poison(report, text)
    for section, keys in (
        ("profile", ("backend", "recipe")),
        ("device", ("kind", "compute_capability")),
    ):
        given = report["profile"][section]
        poisoned["profile"][section] |= {key: given[key] for key in keys}
    for section in ("typed_model", "engine"):  # a file name leads nowhere
        poisoned[section] = _poison(report[section], text.replace("/", "_"))
    return poisoned


def _poison(value: Any, text: str) -> Any:
    fixed = {"status", "created", "sha256", "verdict", "severity", "affects", "dtype"}
    if isinstance(value, dict):
        return {
            text if key not in fixed and re.search(r"[/.]|images|mask", key) else key: (
                child
                if key in fixed or (key == "name" and child in fabricated.POINTS)
                else _poison(child, text)
            )
            for key, child in value.items()
        }
    if isinstance(value, list | tuple):
        return [_poison(child, text) for child in value]
    is_digest = isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value)
    return text if isinstance(value, str) and value and not is_digest else value


@pytest.mark.parametrize(
    "parity",
    [
        None,
        {"skipped": "--no-parity"},
        fabricated.make_parity(),
        fabricated.make_passing_parity(),
        fabricated.make_mixed_parity(),
    ],
)
def test_page_is_one_accessible_file(parity: Any) -> None:
    text, page = render(parity)
    assert text.startswith("<!DOCTYPE html>")
    assert not page.tags.keys() & {"script", "iframe", "object", "img", "base", "form"}
    targets = [link for link in page.links if link != "data:,"]
    assert {link[1:] for link in targets} <= set(page.ids)
    assert "default-src 'none'" in text
    assert not re.search(r"url\(|@import|https?:", text)
    assert len(set(page.ids)) == len(page.ids)
    for tag, values in page.attributes:
        if tag == "svg":
            assert values.get("aria-hidden") == "true" or values.get("aria-label")
        if tag == "th":
            assert values["scope"] in {"col", "row"}
    assert next(tag for tag, _ in page.attributes if tag in {"h1", "h2"}) == "h1"
    assert page.tags["h1"] == page.tags["main"] == 1


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_no_text_of_a_report_becomes_markup(hostile: str) -> None:
    quantization = fabricated.make_quantization()
    plain = fabricated.make_report(fabricated.make_mixed_parity(), quantization=quantization)
    text = render_html(check_report(poison(plain, hostile)))
    page = Page(text)
    assert not page.tags.keys() & {"script", "img", "b>"}
    handlers = {name for _, values in page.attributes for name in values if name[:2] == "on"}
    assert handlers == set()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert len(text) < 300_000
    if len(hostile) < 60 and hostile.isprintable():
        assert hostile in page.text


def test_label_and_verdict_stand_in_the_header() -> None:
    text, page = render(fabricated.make_mixed_parity())
    header = text[: text.index("<main")]
    assert "emulated on CPU" in header
    assert "1 of 20 comparisons failed." in header
    assert "Fail: yolov8n.onnx" in page.text
    _, page = render(fabricated.make_passing_parity())
    assert "measured on NVIDIA GeForce RTX 4090" in page.text
    _, page = render({"skipped": "--no-parity was given"})
    assert "not proven" in page.text
    assert "--no-parity was given" in page.text


def test_grid_says_every_verdict_in_words() -> None:
    text, _ = render(fabricated.make_mixed_parity())
    grid = text[text.index('<table class="grid">') :]
    words = re.findall(r"<span>(\w[\w ]*)</span>", grid[: grid.index("</table>")])
    assert Counter(words) == {"pass": 18, "suspect": 1, "fail": 1}


def test_every_output_has_bars_and_a_histogram_unless_it_has_no_errors() -> None:
    text, page = render(fabricated.make_mixed_parity())
    assert text.count('<article class="panel"') == 4
    assert text.count("Relative L2 error of") == 3
    assert text.count("Histogram of absolute errors") == 3
    assert "100 % equal" in page.text
    assert "infinite in the candidate" in page.text


def test_precision_map_shows_every_node_and_why_it_stayed() -> None:
    text, page = render()
    cells = re.findall(r'<i class="(\w+)" title="([^"]+)">', text)
    assert Counter(kind for kind, _ in cells) == {"f16": 21, "f32": 3}
    assert "/model.5/conv/Conv · float32 · Softmax sums exponentials" in cells[5][1]
    for wanted in ("KeepSoftmaxRule", "clamp to ±6.6e4", "draws random numbers"):
        assert wanted in page.text


def test_build_facts_are_all_there() -> None:
    _, page = render()
    for wanted in (
        "8.9", "TensorRT-RTX 1.7.1.116", "10.3 MiB", fabricated.make_hash("source"),
        fabricated.make_hash("model.engine"), "1 min 12 s", "8, 8", "64, 64",
        TIMES.join(["1", "3", "320", "320"]),
        "1/4/8 assumed", f"Int64 binding. {TIMES} 2", "proven by strongly typed network",
        "inlined 2 functions", "Linux x86_64", "build.workspace=2GiB", "fixed-batch",
        "trtdeploy build yolov8n.onnx --profile rtx4090-fp16",
    ):  # fmt: skip
        assert wanted in page.text, wanted


def test_a_prepared_folder_says_that_it_has_no_engine() -> None:
    steps = fabricated.make_steps(compile="skipped")
    _, page = render(status="prepared", engine=None, compile=None, steps=steps, reproduce="")
    assert "this folder is prepared for its device" in page.text
    assert "Nothing was compiled" in page.text
    assert "sh reproduce.sh" in page.text


@pytest.mark.parametrize("count", [0, 1, 120])
def test_any_number_of_outputs_fits(count: int) -> None:
    outputs = [fabricated.make_output(f"output{i}", 1e-3) for i in range(count)]
    points = [fabricated.make_point(point, *outputs) for point in fabricated.POINTS]
    text, page = render(fabricated.make_parity(*points))
    assert text.count('<article class="panel"') == min(count, 24)
    assert ("96 outputs more in report.json" in page.text) == (count == 120)
    assert len(text) < 500_000


def test_outputs_without_any_figure_are_shown() -> None:
    bare = fabricated.make_output("y", None, reference_amax=None)
    text, page = render(fabricated.make_parity(fabricated.make_point("opt", bare)))
    assert "y" in page.text
    assert "None" not in text.replace("default-src 'none'", "")


def test_optimization_profiles_are_told_apart() -> None:
    output = fabricated.make_output("y", 1e-3, Verdict.FAIL)
    points = [
        fabricated.make_point("max", output, optimization_profile=name) for name in ("day", "night")
    ]
    _, page = render(fabricated.make_parity(*points))
    assert "day max" in page.text
    assert "night max" in page.text


def test_a_point_that_could_not_be_run_is_a_failure() -> None:
    lost = fabricated.make_point("max", problem="cannot be run: out of memory")
    text, page = render(fabricated.make_parity(*fabricated.make_passing_parity().points, lost))
    assert "1 profile point could not be compared." in page.text
    assert "cannot be run: out of memory" in page.text
    assert text.count("not compared</td>") == 2


@pytest.mark.parametrize("nodes", [2000, 12_000])
def test_a_long_model_stays_small(nodes: int) -> None:
    text, page = render(precision=fabricated.make_precision(nodes))
    assert len(text) < 300_000
    assert text.count('<i class="f32" title=') >= 250
    assert ("a cell stands for 6 nodes" in page.text) == (nodes == 12_000)
