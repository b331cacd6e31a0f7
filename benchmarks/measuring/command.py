"""A command to measure, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.sample import Sample

PROJECT = Path(__file__).resolve().parents[2]
LONG_S = 900.0  #: default time limit of a command in seconds; our choice


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a measured command: status, outputs and cost."""

    sample: Sample
    status: int
    stdout: str
    stderr: str

    @property
    def last(self) -> str:
        """The last parts of the command's outputs, for a message."""
        return " … ".join(text.strip()[-600:] for text in (self.stdout, self.stderr) if text.strip())


def nothing() -> None:
    """Do nothing."""


def ended_well(done: Done) -> str:
    """Require exit status 0."""
    return "" if done.status == 0 else f"it ended with {done.status}: {done.last}"


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a contender at one size, with a check of its work."""

    contender: str
    size: int
    words: tuple[str, ...]
    variant: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  #: additional environment variables
    stdin: bytes = b""
    cwd: Path = PROJECT
    netns: Path | None = None  #: file of the network namespace; ``None``: the machine's own
    cable: str = ""  #: interface of the cable whose traffic is counted; empty: none
    timeout_s: float = LONG_S
    before: Callable[[], None] = nothing  #: prepares the initial state; not measured
    check: Callable[[Done], str] = ended_well  #: returns an error text, or empty
    counted: Callable[[Done], Mapping[str, float]] | None = None  #: returns additional values for ``Sample.extra``
    hosts: tuple[str, ...] = ()  #: control groups of hosts whose processor time is measured
    rounds: int = 0  #: maximum number of rounds; 0: all
