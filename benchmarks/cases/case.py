"""What a case is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from benchmarks.figures.goals import Goal
from benchmarks.measuring.command import Command
from benchmarks.places.places import Places


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run asks of its cases."""

    sizes: tuple[int, ...] = ()  #: only these numbers of hosts; empty: the case's own
    rounds: int = 3

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """The sizes that a case measures: its own, or those that were asked for."""
        return self.sizes or tuple(sizes)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one run of a contender under all its conditions together, by walls that were recorded on two quiet
    cores."""

    contender: str
    size: int
    wall_s: float
    rounds: int = 0  #: fewer than the run's; 0: as many


@dataclass(frozen=True, slots=True)
class Table:
    """What the page shows of a case's samples beside wall and processor time."""

    size: str = "hosts"  #: what ``Sample.size`` counts
    memory: bool = True
    traffic: bool = True
    extra: dict[str, str] = field(default_factory=dict)  #: name in ``Sample.extra`` → heading
    wall: bool = True


class Case(Protocol):
    """One case: a module with these names. ``setup`` yields what the other functions are given."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """On the command line."""
        ...

    @property
    def TITLE(self) -> str:  # noqa: N802
        """On the page."""
        ...

    @property
    def ABOUT(self) -> str:  # noqa: N802
        """What is compared, on the page: what each contender does, and what is not the same."""
        ...

    @property
    def BOUND_S(self) -> float:  # noqa: N802
        """After this many seconds no further round is begun."""
        ...

    @property
    def COSTS(self) -> Sequence[Cost]:  # noqa: N802
        """Everything that is measured when no other sizes are asked for, and what that takes."""
        ...

    @property
    def REST_S(self) -> float:  # noqa: N802
        """Seconds of setup, of the states that commands begin from, and of checks."""
        ...

    @property
    def TABLE(self) -> Table:  # noqa: N802
        """The columns of its samples."""
        ...

    @property
    def PLOTTED(self) -> Sequence[str]:  # noqa: N802
        """The contenders of its picture, in their order; none: it has no picture."""
        ...

    def setup(self, places: Places, wanted: Wanted) -> AbstractContextManager[Any]:
        """Make the place and what the commands need."""
        ...

    def commands(self, ready: Any) -> Sequence[Command]:
        """Everything that is measured, in the order of a round: A B C A B C …"""
        ...

    def check(self, ready: Any) -> str:
        """Empty if the state is the same for all contenders; else a sentence, and nothing is measured."""
        ...

    def facts(self, ready: Any) -> dict[str, str]:
        """About the place, for the page."""
        ...

    def goals(self) -> Sequence[Goal]:
        """What is to be reached."""
        ...


def estimate_s(case: Case, wanted: Wanted) -> float:
    """How long a case takes, about, on two quiet cores, without what places need to be made. Other sizes than its own
    are taken to cost as much for each host."""
    own = case.REST_S + sum(min(cost.rounds or wanted.rounds, wanted.rounds) * cost.wall_s for cost in case.COSTS)
    sizes = {cost.size for cost in case.COSTS}
    return own * sum(wanted.of(tuple(sizes))) / max(1, sum(sizes)) if any(sizes) else own


def costed(costs: Sequence[Cost], commands: Sequence[Command]) -> list[Command]:
    """The commands that are measured, with their rounds: at the case's own sizes those that have a cost, at others all,
    as often as at the largest of these."""
    rounds = {(cost.contender, cost.size): cost.rounds for cost in costs}
    largest = {cost.contender: cost.rounds for cost in sorted(costs, key=lambda cost: cost.size)}
    own = {cost.size for cost in costs}
    return [
        replace(command, rounds=rounds.get((command.contender, command.size), largest.get(command.contender, 1)))
        for command in commands
        if command.size not in own or (command.contender, command.size) in rounds
    ]
