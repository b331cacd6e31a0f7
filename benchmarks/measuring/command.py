"""A command to measure, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.sample import Sample

PROJECT = Path(__file__).resolve().parents[2]
LONG_S = 900.0  #: seconds, our choice: no command of the benchmark takes a quarter of an hour


@dataclass(frozen=True, slots=True)
class Done:
    """Result and cost of a command."""

    sample: Sample
    status: int
    stdout: str
    stderr: str

    @property
    def last(self) -> str:
        """The ends of its outputs, for a message."""
        return " … ".join(text.strip()[-600:] for text in (self.stdout, self.stderr) if text.strip())


def nothing() -> None:
    """Do nothing before a command."""


def ended_well(done: Done) -> str:
    """Minimal check of a command: exit status 0."""
    return "" if done.status == 0 else f"it ended with {done.status}: {done.last}"


@dataclass(frozen=True, slots=True)
class Command:
    """A contender at one size: the command, and the check that it did the work."""

    contender: str
    size: int
    words: tuple[str, ...]
    variant: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  #: additions to the benchmark's own environment
    stdin: bytes = b""
    cwd: Path = PROJECT
    netns: Path | None = None  #: network namespace of the controller; the traffic of its cable is counted
    cable: str = ""  #: the machine's interface of that cable
    timeout_s: float = LONG_S
    before: Callable[[], None] = nothing  #: prepares the initial state; not measured
    check: Callable[[Done], str] = ended_well  #: empty if the command did its work, else an error text
    counted: Callable[[Done], Mapping[str, float]] | None = None  #: additional values
    hosts: tuple[str, ...] = ()  #: control groups of hosts, whose processor time is measured too
    rounds: int = 0  #: maximum number of rounds; 0: the number of rounds of the run
