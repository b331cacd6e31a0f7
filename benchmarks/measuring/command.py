"""A command to measure, as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.sample import Sample

PROJECT = Path(__file__).resolve().parents[2]
LONG_S = 900.0  #: default time limit of a command in seconds, our choice; no command takes that long


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
    """Default for ``Command.before``: do nothing."""


def ended_well(done: Done) -> str:
    """Default for ``Command.check``: require exit status 0."""
    return "" if done.status == 0 else f"it ended with {done.status}: {done.last}"


@dataclass(frozen=True, slots=True)
class Command:
    """The command of a contender at one size, with the check that it has done its work."""

    contender: str
    size: int
    words: tuple[str, ...]
    variant: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  #: environment variables in addition to the benchmark's own
    stdin: bytes = b""
    cwd: Path = PROJECT
    netns: Path | None = None  #: file of the network namespace to run in; ``None``: the machine's own
    cable: str = ""  #: the machine's interface of the namespace's cable, whose traffic is counted; empty: none
    timeout_s: float = LONG_S
    before: Callable[[], None] = nothing  #: prepares the initial state; not measured
    check: Callable[[Done], str] = ended_well  #: returns an error text, empty if the work was done
    counted: Callable[[Done], Mapping[str, float]] | None = None  #: returns additional values for ``Sample.extra``
    hosts: tuple[str, ...] = ()  #: control groups of hosts whose processor time is measured too
    rounds: int = 0  #: maximum number of rounds of this command; 0: as many as the run has
