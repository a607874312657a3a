"""Find classes that say one thing twice: run it to list the pairs.

Two classes are twins when they share at least four annotated fields, and those are at least 60 % of
the fields of the smaller one. ``python tests/class_twins.py`` prints them; ``test_structure.py``
holds their number.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "trtdeploy"
LEAST_SHARED = 4
LEAST_SHARE = 0.6


def find_fields(package: Path = PACKAGE) -> dict[str, frozenset[str]]:
    """Return the annotated fields of every class, by ``module:Class``."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package.parent).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found[f"{place}:{node.name}"] = frozenset(_list_fields(node))
    return found


def _list_fields(node: ast.ClassDef) -> Iterator[str]:
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            yield line.target.id


def find_twins(fields: dict[str, frozenset[str]]) -> list[tuple[str, str, frozenset[str]]]:
    """Return pairs of classes with their shared fields, most fields first."""
    pairs = []
    for one, other in combinations(sorted(fields), 2):
        shared = fields[one] & fields[other]
        smaller = min(len(fields[one]), len(fields[other]))
        if len(shared) >= LEAST_SHARED and len(shared) >= LEAST_SHARE * smaller:
            pairs.append((one, other, shared))
    return sorted(pairs, key=lambda pair: (-len(pair[2]), pair[:2]))


if __name__ == "__main__":
    for first, second, names in find_twins(find_fields()):
        print(f"{len(names):3} {first}\n    {second}\n    {', '.join(sorted(names))}")  # noqa: T201
