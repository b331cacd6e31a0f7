"""Protocol for the modules of cases, and its types."""

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
    """Numbers of hosts and of rounds to measure in each case."""

    sizes: tuple[int, ...] = ()  #: numbers of hosts to measure; empty: the numbers that the case defines
    rounds: int = 3

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the requested sizes or, if there are none, ``sizes``."""
        return self.sizes or tuple(sizes)


@dataclass(frozen=True, slots=True)
class Cost:
    """Measured duration of one round of a contender at one size, over all variants of its case, on two idle cores."""

    contender: str
    size: int
    wall_s: float
    rounds: int = 0  #: maximum number of times to measure this contender; 0: no maximum


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a case's table on the page, beside processor time."""

    size: str = "hosts"  #: heading of the table column with ``Sample.size``
    memory: bool = True
    traffic: bool = True
    #: name of a value in ``Sample.extra`` → heading of the table column with the value
    extra: dict[str, str] = field(default_factory=dict)
    wall: bool = True


class Case(Protocol):
    """A module with these names. ``setup`` yields the value that the other functions receive as ``ready``."""

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
        """Seconds after which no further round begins."""
        ...

    @property
    def COSTS(self) -> Sequence[Cost]:  # noqa: N802
        """Durations of all contenders at the case's own sizes."""
        ...

    @property
    def REST_S(self) -> float:  # noqa: N802
        """Seconds for the setup, initial states of hosts, and checks."""
        ...

    @property
    def TABLE(self) -> Table:  # noqa: N802
        """Columns of the case's table on the page."""
        ...

    @property
    def PLOTTED(self) -> Sequence[str]:  # noqa: N802
        """Names of the contenders in the chart, in order; empty: no chart."""
        ...

    def setup(self, places: Places, wanted: Wanted) -> AbstractContextManager[Any]:
        """Create the hosts and files for the commands."""
        ...

    def commands(self, ready: Any) -> Sequence[Command]:
        """Return all commands to measure, in the order of a round."""
        ...

    def check(self, ready: Any) -> str:
        """Return an error text, which stops the case, if contenders left different states on the hosts; else empty."""
        ...

    def facts(self, ready: Any) -> dict[str, str]:
        """Return facts about the hosts and files, for the page: name → sentence."""
        ...

    def goals(self) -> Sequence[Goal]:
        """Return the goals for the case's figures."""
        ...


def estimate_s(case: Case, wanted: Wanted) -> float:
    """Estimate the seconds of a case on two idle cores, without the creation of the lab.

    For sizes without a ``Cost``, the estimate is scaled by the total number of hosts.
    """
    own = case.REST_S + sum(min(cost.rounds or wanted.rounds, wanted.rounds) * cost.wall_s for cost in case.COSTS)
    sizes = {cost.size for cost in case.COSTS}
    return own * sum(wanted.of(tuple(sizes))) / max(1, sum(sizes)) if any(sizes) else own


def costed(costs: Sequence[Cost], commands: Sequence[Command]) -> list[Command]:
    """Return the commands to measure, with their numbers of rounds.

    At the case's own sizes, these are the commands with a ``Cost``; at other sizes, all commands.
    """
    rounds = {(cost.contender, cost.size): cost.rounds for cost in costs}
    largest = {cost.contender: cost.rounds for cost in sorted(costs, key=lambda cost: cost.size)}
    own = {cost.size for cost in costs}
    return [
        replace(command, rounds=rounds.get((command.contender, command.size), largest.get(command.contender, 1)))
        for command in commands
        if command.size not in own or (command.contender, command.size) in rounds
    ]
