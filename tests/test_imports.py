"""Help must be instant: it imports nothing heavy, and the package itself imports nothing at all."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

HEAVY = {
    # Typer carries its own copy; importing click means a package that nobody installs.
    "click",
    "cuda",
    "google.protobuf",
    "ml_dtypes",
    "numpy",
    "onnx",
    "onnxruntime",
    "pycuda",
    "tensorrt",
    "tensorrt_rtx",
    "torch",
    "yaml",
}
RUN_HELP = """
import sys
sys.argv = ["trtdeploy", *{arguments!r}]
from trtdeploy.cli.main import main
try:
    code = main()
except SystemExit as end:
    code = end.code
print("imported:", *sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def imported_modules(stderr: str) -> set[str]:
    lines = [line for line in stderr.splitlines() if line.startswith("imported:")]
    assert lines, f"the program ended before it could say what it imported:\n{stderr}"
    return set(lines[-1].split()[1:])


@pytest.mark.parametrize("arguments", [("--help",), ("build", "--help"), ("--version",)])
def test_help_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    done = run_python("-c", RUN_HELP.format(arguments=arguments))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    heavy = imported_modules(done.stderr) & HEAVY
    assert heavy == set()


def test_first_help_does_without_pydantic() -> None:
    """Typer itself imports pydantic once a command has options to read; not before."""
    done = run_python("-c", RUN_HELP.format(arguments=("--help",)))
    pydantic = imported_modules(done.stderr) & {"pydantic"}
    assert pydantic == set()


def test_package_imports_nothing_heavy() -> None:
    done = run_python(
        "-c", "import trtdeploy, sys; print('imported:', *sys.modules, file=sys.stderr)"
    )
    assert done.returncode == 0, done.stderr
    modules = imported_modules(done.stderr)
    assert "trtdeploy" in modules
    heavy = modules & {*HEAVY, "pydantic", "rich", "typer"}
    assert heavy == set()


def test_runs_as_a_module() -> None:
    done = run_python("-m", "trtdeploy", "--help")
    assert done.returncode == 0, done.stderr
    assert "build" in done.stdout


def measure_cpu_s(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run_python(*command).returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_costs_at_most_twice_the_import_of_typer() -> None:
    """Acceptance 7 of the foundation, as processor time: other processes do not change it."""
    seconds: dict[str, list[float]] = {"typer": [], "help": []}
    commands = {"typer": ("-c", "import typer"), "help": ("-m", "trtdeploy", "--help")}
    for _ in range(7):
        for name, command in commands.items():
            seconds[name].append(measure_cpu_s(*command))
    best = {name: min(values) for name, values in seconds.items()}
    assert best["help"] <= 2 * best["typer"], best


def test_typing_a_model_does_without_pydantic_and_runtimes() -> None:
    """What reads profiles costs 0.1 s and 15 MB, which typing a model has no use for."""
    module = "trtdeploy.precision.typed_model"
    code = f"import {module}, sys; print('imported:', *sys.modules, file=sys.stderr)"
    done = run_python("-c", code)
    assert imported_modules(done.stderr) & {"onnxruntime", "pydantic", "yaml"} == set()
