"""Rounds of one case. Each round runs all commands in turn, so that a disturbance affects all commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.figures.sample import Sample
from benchmarks.measuring.command import Command, Done


@dataclass(slots=True)
class Rounds:
    """Samples and errors of all rounds of a case. ``cut``: reason for an early end."""

    samples: list[Sample] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  #: key of a command → first error of the command
    cut: str = ""


def alternate(
    commands: Sequence[Command],
    rounds: int,
    bound_s: float,
    measure: Callable[[Command, int], Done],
    tell: Callable[[str], None],
) -> Rounds:
    """Measure each command once per round, until the command fails.

    When ``bound_s`` seconds have passed, no further command starts, except in the first round.
    """
    result, began_s = Rounds(), time.monotonic()
    for number in range(rounds):
        for command in commands:
            if key(command) in result.failed or (command.rounds and number >= command.rounds):
                continue
            if number and time.monotonic() - began_s > bound_s:
                result.cut = f"after {number} of {rounds} rounds, at its bound of {bound_s / 60:.0f} minutes"
                return result
            done = measure(command, number)
            wrong = command.check(done)
            if wrong:
                result.failed[key(command)] = wrong
                tell(f"  {key(command)}: {wrong}")
                continue
            counted = command.counted(done) if command.counted else {}
            sample = replace(done.sample, extra={**done.sample.extra, **counted})
            result.samples.append(sample)
            tell(f"  {key(command)}: {sample.wall_s:.2f} s, {sample.cpu_s:.2f} s of the controller's processors")
    return result


def key(command: Command) -> str:
    """Return the tool, number of hosts and variant of ``command`` as text."""
    return ", ".join(filter(None, (command.contender, str(command.size), command.variant)))
