"""Protocol of a case."""

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
    """Options of a run for its cases."""

    sizes: tuple[int, ...] = ()  #: only these numbers of hosts; empty: the case's own sizes
    rounds: int = 3

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Sizes to measure: the requested ones, or the case's own."""
        return self.sizes or tuple(sizes)


@dataclass(frozen=True, slots=True)
class Cost:
    """Duration of one run of a contender under all conditions of its case, recorded on two idle cores."""

    contender: str
    size: int
    wall_s: float
    rounds: int = 0  #: maximum number of rounds; 0: the number of rounds of the run


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a case's samples on the page, in addition to processor time."""

    size: str = "hosts"  #: unit of ``Sample.size``
    memory: bool = True
    traffic: bool = True
    extra: dict[str, str] = field(default_factory=dict)  #: name in ``Sample.extra`` → heading
    wall: bool = True


class Case(Protocol):
    """A case: a module with these names. ``setup`` yields the argument of the other functions."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Name on the command line."""
        ...

    @property
    def TITLE(self) -> str:  # noqa: N802
        """Title on the page."""
        ...

    @property
    def ABOUT(self) -> str:  # noqa: N802
        """Description on the page: the work of each contender, and differences between them."""
        ...

    @property
    def BOUND_S(self) -> float:  # noqa: N802
        """Limit in seconds, after which no further round begins."""
        ...

    @property
    def COSTS(self) -> Sequence[Cost]:  # noqa: N802
        """All measurements at the case's own sizes, with their durations."""
        ...

    @property
    def REST_S(self) -> float:  # noqa: N802
        """Seconds of setup, of preparing initial states, and of checks."""
        ...

    @property
    def TABLE(self) -> Table:  # noqa: N802
        """Columns of the samples."""
        ...

    @property
    def PLOTTED(self) -> Sequence[str]:  # noqa: N802
        """Contenders of the chart, in order; empty: no chart."""
        ...

    def setup(self, places: Places, wanted: Wanted) -> AbstractContextManager[Any]:
        """Create the place and the inputs of the commands."""
        ...

    def commands(self, ready: Any) -> Sequence[Command]:
        """All measured commands, in the order of a round: A B C A B C …"""
        ...

    def check(self, ready: Any) -> str:
        """Return an error text, which stops the case, if contenders left different states; else an empty text."""
        ...

    def facts(self, ready: Any) -> dict[str, str]:
        """Facts about the place, for the page."""
        ...

    def goals(self) -> Sequence[Goal]:
        """Goals of the case."""
        ...


def estimate_s(case: Case, wanted: Wanted) -> float:
    """Estimated duration of a case on two idle cores, without the creation of places.

    At sizes that the case does not list, the cost per host is assumed to be the same.
    """
    own = case.REST_S + sum(min(cost.rounds or wanted.rounds, wanted.rounds) * cost.wall_s for cost in case.COSTS)
    sizes = {cost.size for cost in case.COSTS}
    return own * sum(wanted.of(tuple(sizes))) / max(1, sum(sizes)) if any(sizes) else own


def costed(costs: Sequence[Cost], commands: Sequence[Command]) -> list[Command]:
    """Commands to measure, with their rounds.

    At the case's own sizes, only commands with a cost are measured. At other sizes all commands are measured, with the
    rounds of the largest own size.
    """
    rounds = {(cost.contender, cost.size): cost.rounds for cost in costs}
    largest = {cost.contender: cost.rounds for cost in sorted(costs, key=lambda cost: cost.size)}
    own = {cost.size for cost in costs}
    return [
        replace(command, rounds=rounds.get((command.contender, command.size), largest.get(command.contender, 1)))
        for command in commands
        if command.size not in own or (command.contender, command.size) in rounds
    ]
