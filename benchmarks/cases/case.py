"""What a case is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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
    def TABLE(self) -> Table:  # noqa: N802
        """The columns of its samples."""
        ...

    @property
    def PLOTTED(self) -> Sequence[str]:  # noqa: N802
        """The contenders of its picture, in their order; none: it has no picture."""
        ...

    def estimate_s(self, wanted: Wanted) -> float:
        """How long it takes, about, on two quiet cores, without what places need to be made."""
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
