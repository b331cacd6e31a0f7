"""A command to measure, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.figures.sample import Sample

PROJECT = Path(__file__).resolve().parents[2]
LONG_S = 900.0  #: default time limit of a command in seconds (our choice)


@dataclass(frozen=True, slots=True)
class Done:
    """Result of a measured command: status, outputs and cost."""

    sample: Sample
    status: int
    stdout: str
    stderr: str

    @property
    def last(self) -> str:
        """Last parts of standard output and standard error, for an error message."""
        return " … ".join(text.strip()[-600:] for text in (self.stdout, self.stderr) if text.strip())


def nothing() -> None:
    """Do nothing: the default of ``Command.before``."""


def ended_well(done: Done) -> str:
    """Return an error text if the command ended with another exit status than 0; else an empty text."""
    return "" if done.status == 0 else f"it ended with {done.status}: {done.last}"


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a measured tool for ``size`` hosts, with a check of the result."""

    contender: str
    size: int
    words: tuple[str, ...]
    variant: str = ""
    env: Mapping[str, str] = field(default_factory=dict)  #: additional environment variables of the command
    stdin: bytes = b""
    cwd: Path = PROJECT
    netns: Path | None = None  #: file of the command's network namespace; ``None``: the namespace of this machine
    cable: str = ""  #: name of the network interface to count traffic on; empty: traffic is not counted
    timeout_s: float = LONG_S
    before: Callable[[], None] = nothing  #: function that prepares the initial state outside the measured time
    check: Callable[[Done], str] = ended_well  #: function that returns an error text, or an empty text after success
    #: function that returns additional values for ``Sample.extra``
    counted: Callable[[Done], Mapping[str, float]] | None = None
    hosts: tuple[str, ...] = ()  #: control groups of hosts, to measure the hosts' processor time
    rounds: int = 0  #: maximum number of times to measure the command; 0: no maximum
