"""The contract of the compiler process: every way it can end becomes one error, and it does end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.backends.compiler.fake_compiler import MakeCompiler
from trtdeploy.backends.compiler import worker_process
from trtdeploy.backends.compiler.compile_process import (
    ask_installed_parser,
    compile_engine,
)
from trtdeploy.backends.compiler.compile_request import CompileRequest, CompileResult, EngineSpec
from trtdeploy.backends.compiler.parser_answer import ParserAnswer
from trtdeploy.config.deploy_profile import BuildSection
from trtdeploy.core.errors import CompileError, MissingDependencyError
from trtdeploy.core.ranges import OptimizationProfile, ShapeRange

ROOT = Path(__file__).resolve().parents[3]


def make_request(folder: Path) -> CompileRequest:
    return CompileRequest(
        spec=EngineSpec("tensorrt_rtx"),
        options=BuildSection(),
        model_path=str(folder / "m.onnx"),
        engine_path=str(folder / "m.engine"),
    )


def compile_in(folder: Path, timeout_s: float | None = 30) -> CompileResult:
    return compile_engine(make_request(folder), folder / "build.log", timeout_s=timeout_s)


def ask_parser_in(folder: Path, timeout_s: float = 30) -> ParserAnswer:
    request = CompileRequest(
        spec=EngineSpec("tensorrt_rtx"),
        options=BuildSection(),
        model_path=str(folder / "m.onnx"),
        parse_only=True,
    )
    return ask_installed_parser(request, timeout_s=timeout_s)


def read_pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def wait_until_gone(pids: list[int], within_s: float) -> None:
    """Wait until no process runs; one that nobody has waited for has ended as well."""

    def runs(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    end = time.monotonic() + within_s
    while left := [pid for pid in pids if runs(pid)]:
        assert time.monotonic() < end, f"still running: {left}"
        time.sleep(0.02)


def wait_for_pids(file: Path) -> list[int]:
    end = time.monotonic() + 20
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, "the compiler did not start"
        time.sleep(0.02)
    return read_pids(file)


def test_a_compiler_that_works(make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler("build:nothing")
    phases: list[tuple[str, float]] = []
    result = compile_engine(
        make_request(tmp_path),
        tmp_path / "build.log",
        progress=lambda phase, elapsed_s: phases.append((phase, elapsed_s)),
    )
    assert (tmp_path / "m.engine").read_bytes() == b"plan"
    assert (result.version, result.typing, result.flags) == ("0.0.fake", "strong", ())
    assert result.precision.proven_by == "strongly typed network"
    names = list(dict.fromkeys(phase for phase, _ in phases))
    assert names[-1] in {"build", "build: Tactics"}
    assert {"load", "parse"} & set(names)
    times = [elapsed_s for _, elapsed_s in phases]
    assert times == sorted(times)
    assert "last words of nothing" in (tmp_path / "build.log").read_text()


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("import:abort", r"died in phase 'load' \(signal SIGABRT\)"),
        ("parse:segfault", r"died in phase 'parse' \(signal SIGSEGV\)"),
        ("build:segfault", r"died in phase 'build: Tactics' \(signal SIGSEGV\)"),
        ("build:native_exit", r"died in phase 'build: Tactics' \(exit status 0\)"),
        ("import:exit", r"failed in phase 'load': SystemExit: 3"),
        ("build:exit", r"failed in phase 'build: Tactics': SystemExit: 3"),
        ("build:runtime_error", r"failed in phase .*: RuntimeError: the binding said no"),
    ],
)
def test_every_end_is_a_compile_error(
    behaviour: str, said: str, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler(behaviour)
    with pytest.raises(CompileError, match=said) as info:
        compile_in(tmp_path)
    assert info.value.exit_code == 6
    assert info.value.hint
    assert f"last words of {behaviour.partition(':')[2]}" in info.value.log_tail
    assert not (tmp_path / "m.engine").exists()


def test_a_bug_leaves_its_traceback_in_the_log_not_in_the_tail(
    make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler("build:runtime_error")
    with pytest.raises(CompileError) as info:
        compile_in(tmp_path)
    assert info.value.log_tail == "last words of runtime_error"
    log = (tmp_path / "build.log").read_text()
    assert "Traceback (most recent call last)" in log
    assert log.endswith("RuntimeError: the binding said no\n")


@pytest.mark.parametrize(
    ("behaviour", "library"),
    [("import:import_error", "libcudart.so.13"), ("import:missing_library", "libmissing.so.1")],
)
def test_a_missing_library_is_a_missing_dependency(
    behaviour: str, library: str, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler(behaviour)
    with pytest.raises(MissingDependencyError, match=library) as info:
        compile_in(tmp_path)
    assert info.value.exit_code == 4
    assert "pip install tensorrt-rtx" in info.value.hint


def test_a_missing_package_is_a_missing_dependency(tmp_path: Path) -> None:
    request = CompileRequest(
        spec=EngineSpec("tensorrt"),
        options=BuildSection(),
        model_path="m.onnx",
        engine_path="m.engine",
    )
    pytest.importorskip("tensorrt_rtx")  # the environment of the project has this one only
    with pytest.raises(MissingDependencyError, match="tensorrt is needed for compiling"):
        compile_engine(request, tmp_path / "build.log")


@pytest.mark.parametrize("when", ["import", "build"])
def test_native_output_is_no_event(when: str, make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler(f"{when}:garbage")
    compile_in(tmp_path)
    assert (tmp_path / "m.engine").read_bytes() == b"plan"
    log = (tmp_path / "build.log").read_bytes()
    assert b"\xff\x00 native" in log
    assert b"python words" in log


def test_the_tail_is_printable_and_of_this_run_only(
    make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    (tmp_path / "build.log").write_text("words of an earlier run\n" * 20)
    make_compiler("import:exit")
    with pytest.raises(CompileError) as info:
        compile_in(tmp_path)
    assert "earlier" not in info.value.log_tail
    assert len(info.value.log_tail.splitlines()) <= 12
    assert all(line.isprintable() for line in info.value.log_tail.splitlines())
    assert (tmp_path / "build.log").read_text().startswith("words of an earlier run\n")


@pytest.mark.parametrize("behaviour", ["import:hang", "build:hang_with_gil"])
def test_a_hang_ends_with_the_timeout(
    behaviour: str, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    pids = make_compiler(behaviour)
    started = time.monotonic()
    with pytest.raises(CompileError, match=r"did not finish within 1 s \(phase: ") as info:
        compile_in(tmp_path, timeout_s=1)
    assert time.monotonic() - started < 4
    assert "build.timeout_s" in info.value.hint
    wait_until_gone(read_pids(pids), 0)


def test_a_hang_behind_a_closed_channel_ends(
    make_compiler: MakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pids = make_compiler("build:close_everything_and_hang")
    monkeypatch.setattr(worker_process, "_END_S", 0.2)
    with pytest.raises(CompileError, match="it closed its event channel and hung"):
        compile_in(tmp_path)
    wait_until_gone(read_pids(pids), 1)


def test_processes_that_the_compiler_started_end_with_it(
    make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    pids = make_compiler("build:spawn_and_hang")
    with pytest.raises(CompileError):
        compile_in(tmp_path, timeout_s=1)
    assert len(read_pids(pids)) == 2
    wait_until_gone(read_pids(pids), 1)


def test_an_interrupt_ends_the_compiler(make_compiler: MakeCompiler, tmp_path: Path) -> None:
    pids = make_compiler("build:hang")

    def interrupt(_phase: str, _elapsed_s: float) -> None:
        if pids.exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_engine(make_request(tmp_path), tmp_path / "build.log", progress=interrupt)
    wait_until_gone(read_pids(pids), 0)


PARENT = """
import sys
from pathlib import Path
from trtdeploy.backends.compiler.compile_process import compile_engine
from trtdeploy.backends.compiler.compile_request import CompileRequest, EngineSpec
from trtdeploy.config.deploy_profile import BuildSection
folder = Path(sys.argv[1])
request = CompileRequest(
    spec=EngineSpec("tensorrt_rtx"),
    options=BuildSection(),
    model_path="m.onnx",
    engine_path=str(folder / "m.engine"),
)
compile_engine(request, folder / "build.log")
"""


def start_parent(folder: Path) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(folder)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("behaviour", ["build:hang", "build:hang_with_gil"])
def test_the_compiler_never_outlives_its_parent(
    behaviour: str, ending: signal.Signals, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    pids = make_compiler(behaviour)
    parent = start_parent(tmp_path)
    try:
        compiler = wait_for_pids(pids)
        parent.send_signal(ending)
        parent.wait(10)
    finally:
        parent.kill()
        parent.wait()
    wait_until_gone(compiler, 2)


def test_nothing_is_left_in_the_temporary_folder(
    make_compiler: MakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler("build:nothing")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    seen: list[Path] = []
    compile_engine(
        make_request(tmp_path),
        tmp_path / "build.log",
        progress=lambda _phase, _elapsed_s: seen.extend(temporary.iterdir()),
    )
    assert seen == []
    assert list(temporary.iterdir()) == []


def test_the_current_folder_is_not_imported_from(
    make_compiler: MakeCompiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_compiler("build:nothing")
    models = tmp_path / "models"
    (models / "tensorrt_rtx").mkdir(parents=True)
    for name in ("json.py", "tensorrt_rtx/__init__.py"):
        (models / name).write_text("raise SystemExit('imported a file of the user')")
    monkeypatch.chdir(models)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in {"", "."}])
    assert compile_in(tmp_path).version == "0.0.fake"


def test_a_large_request_arrives(make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler("build:nothing")
    nodes = tuple(f"/model/layers.{i}/norm/ReduceMean" for i in range(20_000))
    request = replace(make_request(tmp_path), fp32_nodes=nodes)
    assert compile_engine(request, tmp_path / "build.log").version == "0.0.fake"


def test_a_request_survives_json() -> None:
    sizes = ShapeRange((1, 3), (2, 3), (4, 3))
    spec = EngineSpec(
        "tensorrt_rtx",
        optimization_profiles=(OptimizationProfile("p", {"x": sizes}),),
    )
    options = BuildSection(workspace=1 << 30, compute_capabilities=("8.9", "12.0"))
    request = CompileRequest(
        spec=spec,
        options=options,
        model_path="m.onnx",
        engine_path="m.engine",
        fp32_nodes=("a", "b"),
    )
    read = CompileRequest.from_json(request.to_json())
    assert read.to_json() == request.to_json()
    assert read.spec == request.spec
    assert read.options.workspace == 1 << 30


def test_what_an_engine_is_names_no_file_of_this_machine() -> None:
    request = CompileRequest(
        spec=EngineSpec("tensorrt"),
        options=BuildSection(),
        model_path="/home/me/m.onnx",
        engine_path="/tmp/m.engine",
    )
    text = str(request.spec)
    assert "/home/me" not in text
    assert "/tmp" not in text
    assert "module='tensorrt'" in text


def test_the_probe_answers(make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler("parse:nothing")
    answer = ask_parser_in(tmp_path)
    assert (answer.parser, answer.errors, answer.crashed) == ("TensorRT-RTX 0.0.fake", (), "")


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("parse:abort", "died in phase 'parse' (signal SIGABRT)"),
        ("parse:runtime_error", "RuntimeError: the binding said no"),
        ("parse:hang", "did not finish within 1 s"),
    ],
)
def test_a_parser_that_crashes_is_an_answer(
    behaviour: str, said: str, make_compiler: MakeCompiler, tmp_path: Path
) -> None:
    make_compiler(behaviour)
    answer = ask_parser_in(tmp_path, timeout_s=1 if behaviour == "parse:hang" else 30)
    assert said in answer.crashed


def test_a_probe_without_a_parser(make_compiler: MakeCompiler, tmp_path: Path) -> None:
    make_compiler("import:missing_library")
    with pytest.raises(MissingDependencyError, match=r"libmissing.so.1"):
        ask_parser_in(tmp_path)


def test_the_worker_imports_little() -> None:
    code = "import sys, trtdeploy.backends.compiler.compile_worker; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    heavy = {"numpy", "onnx", "pydantic", "yaml", "google", "subprocess", "asyncio", "logging"}
    assert not heavy & {name.partition(".")[0] for name in done.stdout.split()}
