"""README and docs: every ``console`` block runs, in order, in one folder per page.

Twice, where a page needs packages that CI has not: with small models in place of what the skipped
commands would have made, everywhere; and as shown, where ``make test-docs`` brought the packages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.docs.page import Block, load_page
from tests.docs.running import ELSEWHERE, PageRun, find_lacks, known_needs
from tests.docs.stand_ins import GIVEN, STAND_INS
from trtdeploy.backends.installed import is_installed

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
COMMANDED = [page for page in PAGES if any(block.commands for block in load_page(page))]
DEMANDING = [page for page in COMMANDED if any(block.needs for block in load_page(page))]
COLUMNS = "100"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def nothing(folder: Path) -> None:
    """For a page that expects nothing of its reader."""


needs_rtx = pytest.mark.skipif(
    not is_installed("tensorrt_rtx"), reason="TensorRT-RTX is not installed"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", COLUMNS)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path / "settings"))
    shutil.copytree(ROOT / "models" / "examples", tmp_path / "models" / "examples")
    return tmp_path


@needs_rtx
@pytest.mark.parametrize("page", COMMANDED, ids=name_of)
def test_a_page_works_with_what_the_project_itself_needs(
    page: Path, folder: Path, subtests: pytest.Subtests
) -> None:
    GIVEN.get(name_of(page), nothing)(folder)
    before = {path.stem for path in folder.rglob("*.onnx")}
    STAND_INS.get(name_of(page), nothing)(folder)
    stand_ins = {path.stem for path in folder.rglob("*") if path.suffix in (".onnx", ".npz")}
    run = PageRun(folder, frozenset(stand_ins - before))
    for block in load_page(page):
        if not block.needs:
            run.follow(block)
            continue
        with subtests.test("block"):
            pytest.skip(f"{name_of(page)}, line {block.line}: needs {', '.join(block.needs)}")


@needs_rtx
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("page", DEMANDING, ids=name_of)
def test_a_page_prints_what_it_shows(page: Path, folder: Path) -> None:
    blocks = [block for block in load_page(page) if not set(block.needs) & set(ELSEWHERE)]
    lacks = sorted({lack for block in blocks for lack in find_lacks(block)})
    if lacks:
        pytest.skip(f"{name_of(page)}: {'; '.join(lacks)}")
    GIVEN.get(name_of(page), nothing)(folder)
    run = PageRun(folder)
    for block in blocks:
        run.follow(block)


def test_every_need_is_one_that_tests_know() -> None:
    blocks = [block for page in PAGES for block in load_page(page)]
    assert len(blocks) >= 8
    assert {need for block in blocks for need in block.needs} <= known_needs()


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
