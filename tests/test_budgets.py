"""The budgets of CONTRIBUTING.md, measured on every file of the package."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "trtdeploy"
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 6
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
BROAD = {"Exception", "BaseException"}
VENDORS = {"cuda", "onnxruntime", "pycuda", "tensorrt", "tensorrt_rtx"}
IMPORTERS = {"__import__", "import_module", "import_optional"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[ast.Module, str], Iterator[str]]


def dotted_name(node: ast.expr) -> str:
    """Return ``logging.basicConfig`` for that expression, its last part when the rest is a call."""
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}".lstrip(".")
    return node.id if isinstance(node, ast.Name) else ""


def calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, dotted_name(node.func)


def functions(tree: ast.Module) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def is_cli_command(function: Function, place: str) -> bool:
    """Typer reads options from parameters and help from the docstring: both may be long.

    A command is the function that is named like its file, or carries a decorator of Typer's.
    """
    decorators = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    names = {dotted_name(decorator).rsplit(".", 1)[-1] for decorator in decorators}
    own_file = place == f"trtdeploy/cli/{function.name}.py"
    return own_file or (
        place.startswith("trtdeploy/cli/") and bool(names & {"command", "callback"})
    )


def count_lines(function: Function, place: str) -> int:
    first = function.lineno
    if is_cli_command(function, place):
        code = function.body[1:] if ast.get_docstring(function) else function.body
        first = code[0].lineno if code else function.end_lineno or first
    return (function.end_lineno or first) - first + 1


def find_long_functions(tree: ast.Module, place: str) -> Iterator[str]:
    for function in functions(tree):
        lines = count_lines(function, place)
        if lines > MAX_FUNCTION_LINES:
            yield f"{place}:{function.lineno}: {function.name} has {lines} lines"


def find_wide_functions(tree: ast.Module, place: str) -> Iterator[str]:
    for function in functions(tree):
        spec = function.args
        names = [arg.arg for arg in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)]
        names += [arg.arg for arg in (spec.vararg, spec.kwarg) if arg]
        count = len([name for name in names if name not in {"self", "cls"}])
        if count > MAX_PARAMETERS and not is_cli_command(function, place):
            yield f"{place}:{function.lineno}: {function.name} takes {count} parameters"


def find_swallowed_exceptions(tree: ast.Module, place: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and catches_all(node.type):
            raises = any(isinstance(n, ast.Raise) for child in node.body for n in ast.walk(child))
            if not raises:
                yield f"{place}:{node.lineno}: a broad except that does not raise hides bugs"
    for call, name in calls(tree):
        if name.endswith("suppress") and any(catches_all(arg) for arg in call.args):
            yield f"{place}:{call.lineno}: suppressing every exception hides bugs"


def catches_all(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    each = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(dotted_name(name).rsplit(".", 1)[-1] in BROAD for name in each)


def find_terminal_output(tree: ast.Module, place: str) -> Iterator[str]:
    if place.startswith("trtdeploy/cli/"):
        return
    for call, name in calls(tree):
        if name in {"print", "logging.basicConfig"}:
            yield f"{place}:{call.lineno}: {name} belongs to the CLI; report by return or callback"


def find_vendor_imports_by_name(tree: ast.Module, place: str) -> Iterator[str]:
    """Find what import-linter cannot see: vendor modules imported by a string."""
    if place.startswith("trtdeploy/backends/"):
        return
    for call, name in calls(tree):
        first = call.args[0] if call.args else None
        module = first.value if isinstance(first, ast.Constant) else None
        if name.rsplit(".", 1)[-1] not in IMPORTERS or not isinstance(module, str):
            continue
        if module.split(".", 1)[0] in VENDORS:
            yield f"{place}:{call.lineno}: {module} may be imported in backends only"


CHECKS: tuple[Check, ...] = (
    find_long_functions,
    find_wide_functions,
    find_swallowed_exceptions,
    find_terminal_output,
    find_vendor_imports_by_name,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_package_keeps_budget(check: Check) -> None:
    found = [
        problem
        for path in FILES
        for problem in check(
            ast.parse(path.read_text(encoding="utf-8")), path.relative_to(ROOT).as_posix()
        )
    ]
    assert not found, "\n" + "\n".join(found)


def test_files_are_short() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = [f"{path.relative_to(ROOT)}: {n}" for path, n in lengths.items() if n > MAX_FILE_LINES]
    assert not long, f"longer than {MAX_FILE_LINES} lines: {long}"


def test_modules_have_telling_names() -> None:
    parts = {part for path in FILES for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not parts & VAGUE_NAMES


def test_the_package_was_found() -> None:
    assert len(FILES) > 20


LONG = "def f():\n" + "    x = 1\n" * MAX_FUNCTION_LINES
WIDE = "def f(a, b, c, d, *, e, f, g): pass"
COMMAND = "@app.command()\ndef f(a, b, c, d, *, e, f, g): pass"


@pytest.mark.parametrize(
    ("check", "source", "place", "count"),
    [
        (find_long_functions, LONG, "trtdeploy/core/a.py", 1),
        (find_long_functions, LONG.replace("    x = 1\n", "", 1), "trtdeploy/core/a.py", 0),
        (find_long_functions, LONG, "trtdeploy/cli/f.py", 0),
        (find_long_functions, LONG + "    x = 1\n", "trtdeploy/cli/f.py", 1),
        (find_wide_functions, WIDE, "trtdeploy/core/a.py", 1),
        (find_wide_functions, WIDE.replace("(a,", "(self,"), "trtdeploy/core/a.py", 0),
        (find_wide_functions, WIDE, "trtdeploy/cli/a.py", 1),
        (find_wide_functions, WIDE, "trtdeploy/cli/f.py", 0),
        (find_wide_functions, COMMAND, "trtdeploy/cli/a.py", 0),
        (find_wide_functions, COMMAND, "trtdeploy/core/a.py", 1),
        (find_swallowed_exceptions, "try: f()\nexcept: pass", "a.py", 1),
        (find_swallowed_exceptions, "try: f()\nexcept (OSError, Exception): g()", "a.py", 1),
        (find_swallowed_exceptions, "try: f()\nexcept Exception as e: raise X from e", "a.py", 0),
        (find_swallowed_exceptions, "try: f()\nexcept OSError: pass", "a.py", 0),
        (find_swallowed_exceptions, "with contextlib.suppress(Exception): f()", "a.py", 1),
        (find_terminal_output, "print(1)", "trtdeploy/core/a.py", 1),
        (find_terminal_output, "logging.basicConfig()", "trtdeploy/core/a.py", 1),
        (find_terminal_output, "print(1)", "trtdeploy/cli/a.py", 0),
        (find_vendor_imports_by_name, "import_optional('tensorrt.x')", "trtdeploy/core/a.py", 1),
        (find_vendor_imports_by_name, "import_optional('yaml')", "trtdeploy/core/a.py", 0),
        (find_vendor_imports_by_name, "import_module('cuda')", "trtdeploy/backends/a.py", 0),
    ],
)
def test_checks_see_what_they_claim(check: Check, source: str, place: str, count: int) -> None:
    assert len(list(check(ast.parse(source), place))) == count
