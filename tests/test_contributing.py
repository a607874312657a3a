"""What CONTRIBUTING.md says about adding things is true, and nothing is added by half."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import trtdeploy
from tests.building.models import save_convnet
from tests.contract.regenerate_api import DISTRIBUTIONS
from tests.report import fabricated
from trtdeploy.backends.compiler.compile_request import CompileRequest
from trtdeploy.building.compiling import make_compile_request
from trtdeploy.building.manifest import BuiltFolder, Manifest, load_folder
from trtdeploy.building.request import BuildRequest
from trtdeploy.cli.app import app
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.parity.result import OutputMetrics
from trtdeploy.precision import planning
from trtdeploy.preflight.checking import ALL_CHECKS
from trtdeploy.report import console
from trtdeploy.report.figures import FIGURES, Figure
from trtdeploy.report.page import figure_table
from trtdeploy.report.page.html import render_html

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "trtdeploy"
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
HOW_TO_ADD = TEXT.partition("## How to add")[2].partition("\n## ")[0]
QUOTED = sorted(set(re.findall(r"`([^`\n]+)`", HOW_TO_ADD)))
MOST_WORDS = 1400
"""Two pages."""


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def parse_folder(place: str) -> list[ast.Module]:
    return [parse(path) for path in sorted((PACKAGE / place).rglob("*.py"))]


def walk(trees: list[ast.Module]) -> Iterator[ast.AST]:
    for tree in trees:
        yield from ast.walk(tree)


def find_classes(place: str, suffix: str) -> set[str]:
    found = {node.name for node in walk(parse_folder(place)) if isinstance(node, ast.ClassDef)}
    return {name for name in found if name.endswith(suffix) and not name.startswith("_")}


def find_attributes(trees: list[ast.Module]) -> set[str]:
    return {node.attr for node in walk(trees) if isinstance(node, ast.Attribute)}


# The text


def test_it_has_two_pages() -> None:
    assert len(TEXT.split()) <= MOST_WORDS


@pytest.mark.parametrize("path", [q for q in QUOTED if re.fullmatch(r"[\w./-]+/[\w./-]*", q)])
def test_paths_exist(path: str) -> None:
    is_placeholder = re.search(r"[A-Z]{3}", path)
    assert (ROOT / (Path(path).parent if is_placeholder else path)).exists()


@pytest.mark.parametrize("name", [q for q in QUOTED if re.fullmatch(r"\w+\.py", q)])
def test_files_named_without_a_folder_exist(name: str) -> None:
    assert list(PACKAGE.rglob(name)), name


@pytest.mark.parametrize("name", [q for q in QUOTED if re.fullmatch(r"\w*[_A-Z]\w*", q)])
def test_names_of_code_exist(name: str) -> None:
    sources = [*PACKAGE.rglob("*.py"), ROOT / "tests/contract/regenerate_api.py"]
    assert any(re.search(rf"\b{name}\b", path.read_text("utf-8")) for path in sources), name


def test_every_room_is_named() -> None:
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    section = TEXT.partition("## How the code is laid out")[2].partition("##")[0]
    assert rooms <= set(re.findall(r"`(\w+)`", section))


def test_versions_of_tensorrt_are_counted() -> None:
    count = sum(not version.startswith("rtx-") for version in DISTRIBUTIONS)
    said = re.findall(r"API of (\d+)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said == [str(count)]


# Rules, checks, passes, commands: what has a file is in use


def test_every_precision_rule_is_in_use() -> None:
    used = {type(rule).__name__ for rule in planning._make_rules(())}
    assert used == find_classes("precision/rules", "Rule") - {"PrecisionRule"}


def test_every_check_is_in_use() -> None:
    used = {type(check).__name__ for check in ALL_CHECKS}
    assert used == find_classes("preflight/checks", "Check")


def test_every_pass_is_in_use() -> None:
    made = {
        node.func.id
        for node in walk(parse_folder("."))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert find_classes("graph/passes", "Pass") <= made


def list_names(module: ast.Module) -> set[str]:
    """Return the names of functions and variables that a module defines."""
    functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
    assigned = [node for node in module.body if isinstance(node, ast.Assign)]
    return functions | {ast.unparse(target) for node in assigned for target in node.targets}


def test_every_file_of_a_command_is_in_the_application() -> None:
    commands = {entry.callback.__name__ for entry in app.registered_commands if entry.callback}
    groups = {
        entry.typer_instance.info.name for entry in app.registered_groups if entry.typer_instance
    }
    files = {
        path.stem
        for path in (PACKAGE / "cli").glob("*.py")
        if path.stem in list_names(parse(path)) - {"app", "main"}
    }
    assert commands | groups == files


# A builder option: one place plus its use


CANDIDATES: tuple[Any, ...] = (True, False, 1, 2.0, "1GiB", "ampere_plus", ("12.0",))


def choose_option(name: str) -> BuildSection:
    """Return a section where one option is not what it is by default."""
    plain = BuildSection()
    for value in CANDIDATES:
        try:
            section = BuildSection.model_validate({name: value})
        except ValidationError:
            continue
        if getattr(section, name) != getattr(plain, name):
            return section
    raise AssertionError(f"none of {CANDIDATES} is a value of build.{name}")


@pytest.fixture(scope="module")
def manifest(tmp_path_factory: pytest.TempPathFactory) -> Manifest:
    folder = tmp_path_factory.mktemp("option")
    model = save_convnet(folder / "net.onnx")
    request = BuildRequest(
        model,
        "rtx4090-fp16",
        output_dir=folder / "out",
        prepare_only=True,
        check_parity=False,
    )
    trtdeploy.build(request)
    return load_folder(folder / "out").manifest


@pytest.mark.parametrize("name", BuildSection.model_fields)
def test_an_option_reaches_the_compiler_process(name: str, manifest: Manifest) -> None:
    section = choose_option(name)
    profile = manifest.profile.profile.model_copy(update={"build": section})
    changed = replace(manifest, profile=replace(manifest.profile, profile=profile))
    request = make_compile_request(BuiltFolder(Path(), changed))
    options = CompileRequest.from_json(request.to_json()).options
    wanted = getattr(section, name)
    if name == "compute_capabilities":
        wanted = ["8.9", *wanted]  # the device's own beside
    assert getattr(options, name) == wanted


@pytest.mark.parametrize("name", BuildSection.model_fields)
def test_an_option_is_used(name: str) -> None:
    trees = [*parse_folder("backends/compiler"), parse(PACKAGE / "building/compiling.py")]
    read = {
        node.attr
        for node in walk(trees)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value).rsplit(".", 1)[-1] in {"options", "build"}
    }
    flags = {node.value for node in walk(trees) if isinstance(node, ast.Constant)}
    assert name in read | flags


# A parity figure: its field, its sum, its column


NO_FIGURE_OF_ITS_OWN = {"largest_tie_gap": "a tie is a note of the verdict"}


def test_every_field_of_the_metrics_is_filled_in() -> None:
    filled = {
        keyword.arg
        for node in walk(parse_folder("parity"))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"replace", "OutputMetrics"}
        for keyword in node.keywords
    }
    assert {field.name for field in fields(OutputMetrics)} <= filled


def test_every_figure_of_the_metrics_has_a_column() -> None:
    read = find_attributes([parse(PACKAGE / "report/figures.py")])
    figures = {field.name for field in fields(OutputMetrics) if field.type == "float | None"}
    assert figures - read == set(NO_FIGURE_OF_ITS_OWN)


def test_a_column_is_one_entry_for_page_and_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    twin = Figure("Twin of mean", lambda o: f"{o.metrics.mean_abs_error}", console="twin")
    for module in (console, figure_table):
        monkeypatch.setattr(module, "FIGURES", (*FIGURES, twin))
    parity = fabricated.make_parity(
        fabricated.make_point("min", fabricated.make_output("output0", 0.5))
    )
    report = fabricated.check_report(fabricated.make_report(parity))
    page, shown = render_html(report), console.render_console(report)
    assert ">Twin of mean</th>" in page
    assert ">1.5</td>" in page
    header, row = (
        next(line for line in shown.splitlines() if line.startswith(start) and "  " in line)
        for start in ("point", "min")
    )
    assert header.split()[-1] == "twin"
    assert row.split()[-2:] == ["1.5", "pass"]
