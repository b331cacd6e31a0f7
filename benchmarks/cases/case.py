"""Protocol for the modules that define a case of the benchmark, and the types that they use."""

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
    """Numbers of hosts to measure, and the number of repetitions."""

    sizes: tuple[int, ...] = ()  #: numbers of hosts to measure; empty: the numbers that the case defines
    rounds: int = 3

    def of(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the requested numbers of hosts or, without a request, ``sizes``."""
        return self.sizes or tuple(sizes)


@dataclass(frozen=True, slots=True)
class Cost:
    """Duration of one run of a tool with ``size`` hosts, in all variants of a case, on two idle cores."""

    contender: str
    size: int
    wall_s: float
    rounds: int = 0  #: maximum number of times to measure this tool; 0: no maximum


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of a case's table in ``docs/performance.md``. The column with processor time always exists."""

    size: str = "hosts"  #: heading of the table column with ``Sample.size``
    memory: bool = True
    traffic: bool = True
    #: name of a value in ``Sample.extra`` → heading of the table column with the value
    extra: dict[str, str] = field(default_factory=dict)
    wall: bool = True


class Case(Protocol):
    """Names that the module of a case defines. The other functions receive the value that ``setup`` yields."""

    @property
    def NAME(self) -> str:  # noqa: N802 - a module's constant
        """Name of the case on the command line."""
        ...

    @property
    def TITLE(self) -> str:  # noqa: N802
        """Title of the case in ``docs/performance.md``."""
        ...

    @property
    def ABOUT(self) -> str:  # noqa: N802
        """Description of the work of each tool in this case."""
        ...

    @property
    def BOUND_S(self) -> float:  # noqa: N802
        """Time limit of the case in seconds. After the limit, no command starts, except in the first repetition."""
        ...

    @property
    def COSTS(self) -> Sequence[Cost]:  # noqa: N802
        """Durations of all tools, for each number of hosts."""
        ...

    @property
    def REST_S(self) -> float:  # noqa: N802
        """Estimated seconds for the setup, for the initial states of hosts, and for checks."""
        ...

    @property
    def TABLE(self) -> Table:  # noqa: N802
        """Columns of the case's table in ``docs/performance.md``."""
        ...

    @property
    def PLOTTED(self) -> Sequence[str]:  # noqa: N802
        """Names of the tools in the case's chart, in order; empty: no chart."""
        ...

    def setup(self, places: Places, wanted: Wanted) -> AbstractContextManager[Any]:
        """Create the hosts and files that the case's commands use."""
        ...

    def commands(self, ready: Any) -> Sequence[Command]:
        """Return all commands to measure, in the order of measurement."""
        ...

    def check(self, ready: Any) -> str:
        """Return an error text if the tools left hosts in different states, else empty. An error stops the case."""
        ...

    def facts(self, ready: Any) -> dict[str, str]:
        """Return facts about the case for ``docs/performance.md``: name → sentence."""
        ...

    def goals(self) -> Sequence[Goal]:
        """Return the case's goals: limits for figures computed from samples."""
        ...


def estimate_s(case: Case, wanted: Wanted) -> float:
    """Estimate the seconds that a case takes on two idle cores, without the creation of the lab.

    For numbers of hosts without a ``Cost``, the estimate is proportional to the total number of hosts.
    """
    own = case.REST_S + sum(min(cost.rounds or wanted.rounds, wanted.rounds) * cost.wall_s for cost in case.COSTS)
    sizes = {cost.size for cost in case.COSTS}
    return own * sum(wanted.of(tuple(sizes))) / max(1, sum(sizes)) if any(sizes) else own


def costed(costs: Sequence[Cost], commands: Sequence[Command]) -> list[Command]:
    """Set each command's maximum number of rounds from ``costs``.

    A command is left out if ``costs`` has entries for the number of hosts, but none for the command's tool.
    """
    rounds = {(cost.contender, cost.size): cost.rounds for cost in costs}
    largest = {cost.contender: cost.rounds for cost in sorted(costs, key=lambda cost: cost.size)}
    own = {cost.size for cost in costs}
    return [
        replace(command, rounds=rounds.get((command.contender, command.size), largest.get(command.contender, 1)))
        for command in commands
        if command.size not in own or (command.contender, command.size) in rounds
    ]
