"""The shape of the package: nothing imports in a circle, and nothing is said by two classes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.class_twins import find_fields, find_twins

PACKAGE = Path(__file__).parents[1] / "trtdeploy"
MOST_TWINS = 12


def name_modules(package: Path) -> dict[str, Path]:
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk_running_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield every node, those inside functions too, but not what only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if not is_for_types_only(node):
            yield node
            yield from walk_running_code(node)


def list_imports(path: Path, modules: dict[str, Path]) -> set[str]:
    found = set()
    for node in walk_running_code(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
    return found & modules.keys()


def find_circle(arrows: dict[str, set[str]]) -> list[str]:
    """Return one circle of imports, empty when there is none."""
    done: set[str] = set()

    def follow(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in sorted(arrows.get(name, ())):
            circle = follow(target, [*path, name])
            if circle:
                return circle
        done.add(name)
        return []

    return next((circle for name in sorted(arrows) if (circle := follow(name, []))), [])


def test_no_module_imports_itself_through_others() -> None:
    modules = name_modules(PACKAGE)
    circle = find_circle({name: list_imports(path, modules) for name, path in modules.items()})
    assert not circle, " -> ".join(circle)


@pytest.mark.parametrize(
    ("arrows", "circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
        ({"a": {"a"}}, ["a", "a"]),
    ],
)
def test_circles_are_found(arrows: dict[str, set[str]], circle: list[str]) -> None:
    assert find_circle(arrows) == circle


def test_imports_inside_functions_count_and_those_for_types_do_not(tmp_path: Path) -> None:
    text = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a\n"
        "def f():\n    from p.b import thing\n"
    )
    (tmp_path / "m.py").write_text(text)
    modules = {"p": tmp_path, "p.a": tmp_path, "p.b": tmp_path}
    assert list_imports(tmp_path / "m.py", modules) == {"p.b"}


def test_the_architecture_names_what_is_there() -> None:
    text = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    picture = text.split("```")[1]
    assert rooms <= set(re.findall(r"\b[a-z]+\b", picture))
    files = re.findall(r"`([a-z_]+/[a-z_/]*\.py)`", text)
    missing = [name for name in files if not (PACKAGE / name).is_file()]
    assert files
    assert not missing


def test_hardly_two_classes_share_their_fields() -> None:
    """A second class for one thing must be kept in step by hand; say why at the class."""
    twins = find_twins(find_fields(PACKAGE))
    shown = "\n".join(f"{one} and {other}: {', '.join(sorted(same))}" for one, other, same in twins)
    assert len(twins) <= MOST_TWINS, shown


def test_twins_are_found() -> None:
    fields = {
        "one": frozenset("abcde"),
        "copy": frozenset("abcdx"),
        "wide": frozenset("abcdefghij"),
        "small": frozenset("abc"),
    }
    pairs = [(one, other) for one, other, _ in find_twins(fields)]
    assert pairs == [("one", "wide"), ("copy", "one"), ("copy", "wide")]
