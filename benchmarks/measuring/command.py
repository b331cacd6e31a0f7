"""A command to be measured, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.sample import Sample

PROJECT = Path(__file__).resolve().parents[2]
LONG_S = 900.0  #: our choice: nothing of the benchmark takes a quarter of an hour


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended, and what it cost."""

    sample: Sample
    status: int
    stdout: str
    stderr: str

    @property
    def last(self) -> str:
        """The ends of its outputs, for a sentence."""
        return " … ".join(text.strip()[-600:] for text in (self.stdout, self.stderr) if text.strip())


def nothing() -> None:
    """Before a command that needs nothing."""


def ended_well(done: Done) -> str:
    """The least that is asked of a command."""
    return "" if done.status == 0 else f"it ended with {done.status}: {done.last}"


@dataclass(frozen=True, slots=True)
class Command:
    """One contender at one size: what is run, and how it is known that it did the work."""

    contender: str
    size: int
    words: tuple[str, ...]
    variant: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  #: beside the benchmark's own
    stdin: bytes = b""
    cwd: Path = PROJECT
    netns: Path | None = None  #: the network that the controller is in; its cable's traffic is counted
    cable: str = ""  #: the machine's end of that cable
    timeout_s: float = LONG_S
    before: Callable[[], None] = nothing  #: makes the state that it begins from; is not measured
    check: Callable[[Done], str] = ended_well  #: empty if it did the work, else a sentence that says what it did not
    counted: Callable[[Done], Mapping[str, float]] | None = None  #: further values
    hosts: tuple[str, ...] = ()  #: control groups of hosts; their processor time is measured as well
    rounds: int = 0  #: fewer than the run's; 0: as many
