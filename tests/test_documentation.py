"""README and docs: every ``console`` block runs, in order, in one folder per page, as shown.

A page that needs PyTorch runs under ``make test-export``, which has it. Commands for a GPU are
skipped, each with the reason.
"""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.given import GIVEN
from tests.docs.page import Block, load_page
from tests.docs.running import ELSEWHERE, PYTORCH, PageRun, find_lacks, known_needs
from trtdeploy.backends.installed import is_installed

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COLUMNS = "100"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def nothing(folder: Path) -> None:
    """For a page that expects nothing of its reader."""


def list_pages_with_commands() -> list[Any]:
    found = []
    for page in PAGES:
        blocks = load_page(page)
        frameworks = [pytest.mark.pytorch] if any(PYTORCH in b.needs for b in blocks) else []
        if any(block.commands for block in blocks):
            found.append(pytest.param(page, id=name_of(page), marks=frameworks))
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    # a slow machine says in between that it is still at work
    monkeypatch.setattr("trtdeploy.cli.output._SILENCE_S", math.inf)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path / "settings"))
    shutil.copytree(ROOT / "models" / "examples", tmp_path / "models" / "examples")
    return tmp_path


@pytest.mark.skipif(not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", list_pages_with_commands())
def test_a_page_prints_what_it_shows(page: Path, folder: Path, subtests: pytest.Subtests) -> None:
    blocks = load_page(page)
    if lacks := sorted({lack for block in blocks for lack in find_lacks(block)}):
        pytest.skip(f"{name_of(page)}: {'; '.join(lacks)}")
    GIVEN.get(name_of(page), nothing)(folder)
    run = PageRun(folder)
    for block in blocks:
        if elsewhere := sorted(set(block.needs) & set(ELSEWHERE)):
            with subtests.test("block"):
                pytest.skip(f"{name_of(page)}, line {block.line}: runs on {elsewhere[0]} only")
            continue
        run.follow(block)


def test_every_need_is_one_that_tests_know() -> None:
    blocks = [block for page in PAGES for block in load_page(page)]
    assert len(blocks) >= 8
    assert {need for block in blocks for need in block.needs} <= known_needs()


def test_what_pages_install_is_what_they_are_run_with() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    [there] = [words for words in list_installed(makefile) if "torchvision" in words]
    for page in (ROOT / "docs").glob("*.md"):
        for words in list_installed(page.read_text(encoding="utf-8")):
            assert words <= there | {"trtdeploy"}, name_of(page)


def list_installed(text: str) -> list[set[str]]:
    """Return the packages and extras of every ``pip install`` of a text."""
    commands = re.findall(r"pip install ([^#\n`]+)", text)
    return [set(re.findall(r"[\w-]{2,}", words)) - {"--quiet", "--editable"} for words in commands]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?://)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_commands_of_ci_files_are_ones_that_the_page_runs() -> None:
    page = ROOT / "docs" / "parity-gate-in-ci.md"
    blocks = load_page(page)
    run = {command.text for block in blocks for command in block.commands}
    for block in blocks:
        assert commands_of(block) <= run, block.file


def commands_of(block: Block) -> set[str]:
    lines = (
        line.strip().removeprefix("- ").removeprefix("run: ") for line in block.content.splitlines()
    )
    return {line for line in lines if line.startswith("trtdeploy ")}
