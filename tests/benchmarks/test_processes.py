from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from benchmarks.processes import ProcessTimeoutError, measure_process
from benchmarks.rounds import run_in_turn, warm_up

MEGABYTE = 1_000_000
PYTHON = (sys.executable, "-I", "-S", "-c")


def test_memory_of_the_child_is_seen() -> None:
    done = measure_process([*PYTHON, f"bytearray(b'x') * {200 * MEGABYTE}"])
    assert not done.failed
    assert 200 * MEGABYTE < done.peak_bytes < 260 * MEGABYTE


def test_memory_of_the_measuring_process_is_not_seen() -> None:
    ballast = bytearray(b"x") * (200 * MEGABYTE)
    done = measure_process([*PYTHON, "pass"])
    assert len(ballast) > 5 * done.peak_bytes


def test_memory_of_a_grandchild_is_seen() -> None:
    inner = f"bytearray(b'x') * {150 * MEGABYTE}"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    assert measure_process([*PYTHON, outer]).peak_bytes > 150 * MEGABYTE


def test_time_is_measured_from_outside() -> None:
    done = measure_process([*PYTHON, "import time; time.sleep(0.3)"])
    assert 0.3 <= done.wall_s < 3
    assert done.cpu_s < done.wall_s


def test_output_and_status_are_kept(tmp_path: Path) -> None:
    program = ["sh", "-c", 'pwd; echo "$NAME" >&2; exit 3']
    done = measure_process(program, folder=tmp_path, variables={"NAME": "a b"})
    assert done.failed
    assert done.log_tail.splitlines() == [str(tmp_path), "a b"]
    assert done.reason == "exit status 3: a b"


def test_the_reason_is_the_line_that_says_error() -> None:
    script = "echo start; echo error: no engine; echo hint: try again; exit 6"
    assert measure_process(["sh", "-c", script]).reason == "exit status 6: error: no engine"


def test_a_signal_is_a_negative_status() -> None:
    assert measure_process([*PYTHON, "import os; os.kill(os.getpid(), 9)"]).exit_status == -9


def test_too_slow_a_program_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    with pytest.raises(ProcessTimeoutError, match=r"longer than 0\.5 s"):
        measure_process(["sh", "-c", f"echo $$ > {note}; sleep 60"], timeout_s=0.5)
    status = Path("/proc") / note.read_text(encoding="utf-8").strip() / "status"
    for _ in range(100):  # its new parent reaps it a moment later
        if not status.exists() or "State:\tZ" in status.read_text(encoding="utf-8"):
            return
        time.sleep(0.02)
    pytest.fail("the program is still alive")


def test_unknown_program_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-program"):
        measure_process(["no-such-program"])


def test_programs_run_in_turn(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write = "open({!r}, 'a').write({!r})"
    commands = {name: [*PYTHON, write.format(str(log), name)] for name in "AB"}
    lines: list[str] = []
    rounds: list[str] = []
    assert not warm_up(commands, lines.append)["A"].failed
    found = run_in_turn(commands, 2, lines.append, after_round=lambda: rounds.append("-"))
    assert log.read_text(encoding="utf-8") == "AB" + "ABAB"
    assert [len(runs) for runs in found.values()] == [2, 2]
    assert len(lines) == 6
    assert len(rounds) == 2


def test_failing_program_runs_once_and_the_other_goes_on() -> None:
    commands = {"bad": ["sh", "-c", "echo no; exit 1"], "good": [*PYTHON, "pass"]}
    lines: list[str] = []
    found = run_in_turn(commands, 2, lines.append)
    assert [run.reason for run in found["bad"]] == ["exit status 1: no"]
    assert len(found["good"]) == 2
    assert "  bad: exit status 1: no" in lines
