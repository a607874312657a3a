"""Running several programs in turn: A B A B, so that a busy machine is busy for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.processes import Command, Measurement, measure_process

Progress = Callable[[str], None]


def warm_up(commands: Mapping[str, Command], progress: Progress) -> dict[str, Measurement]:
    """Run each command once: fills the file cache, and shows which of them work at all."""
    found = {}
    for name, command in commands.items():
        measurement = measure_process(command)
        took = measurement.reason if measurement.failed else f"{measurement.wall_s:.3f} s"
        progress(f"  not counted: {name} {took}")
        found[name] = measurement
    return found


def run_in_turn(
    commands: Mapping[str, Command],
    rounds: int,
    progress: Progress,
    *,
    after_round: Callable[[], None] = lambda: None,
) -> dict[str, list[Measurement]]:
    """Measure each command ``rounds`` times, one after another in every round.

    A command that fails is not run again; its failed measurement is then its only one.

    Args:
        commands: Programs and arguments by name.
        rounds: How often.
        progress: Called with a line of text after each run.
        after_round: Called at the end of each round.
    """
    found: dict[str, list[Measurement]] = {name: [] for name in commands}
    for number in range(1, rounds + 1):
        for name, command in commands.items():
            if any(measurement.failed for measurement in found[name]):
                continue
            measurement = measure_process(command)
            if measurement.failed:
                found[name] = [measurement]
                progress(f"  {name}: {measurement.reason}")
            else:
                found[name].append(measurement)
                progress(f"  round {number} of {rounds}: {name} {measurement.wall_s:.3f} s")
        after_round()
    return found
