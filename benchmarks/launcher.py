"""Run one command and report what it cost: ``python -I -S launcher.py RESULT LOG COMMAND...``.

Linux hands the peak memory of a process on to the program it executes, so whoever starts a program
sets a floor under that program's figure. This file imports next to nothing to keep the floor low
(about 10 MB), whatever the benchmark itself holds in memory.
"""

import json
import os
import sys
import time


def main(result_path: str, log_path: str, command: list[str]) -> None:
    """Run ``command`` with its output in ``log_path``; write status, seconds and kibibytes."""
    opened = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log_path, opened, 0o644),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    started = time.perf_counter()
    process = os.posix_spawn(command[0], command, os.environ, file_actions=actions)
    _, status, usage = os.wait4(process, 0)
    wall_s = time.perf_counter() - started
    result = {
        "exit_status": os.waitstatus_to_exitcode(status),
        "wall_s": wall_s,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,  # Linux counts in kibibytes
    }
    with open(result_path, "w", encoding="utf-8") as file:  # noqa: PTH123 - pathlib costs memory
        json.dump(result, file)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
