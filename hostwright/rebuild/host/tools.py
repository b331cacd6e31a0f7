"""Functions and values that a run provides for rebuilds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostwright.apply.disturb.draining import Hooks, read_hooks
from hostwright.apply.host.applying import Accept
from hostwright.apply.run import Run
from hostwright.plan.targets import TargetHost
from hostwright.rebuild.host.clock import Phases
from hostwright.rebuild.rebuild import Rebuild
from hostwright.rebuild.ways.probing import Ways
from hostwright.transport.identity.hostkeys import HostKeyMismatch
from hostwright.transport.root.rootshell import RootShell
from hostwright.verify.verdict import Check


@dataclass(frozen=True)
class Tools:
    """Functions and values of a run for the rebuild of one host."""

    run: Run
    target: TargetHost
    ways: Ways
    #: function that installs an operating system, and calls the last argument before the first change
    install: Callable[[str, Phases, Callable[[], None]], None]
    trust: Callable[[HostKeyMismatch], None]  #: function that records a new host key if the console confirms the key
    check: Callable[[], Sequence[Check]]
    history: tuple[Rebuild, ...]
    accept: Accept | None = None

    @property
    def hooks(self) -> Hooks | None:
        """The site's commands that drain the host and return it to service, or ``None``."""
        return read_hooks(self.target.host)

    def connect(self) -> RootShell:
        """Open a new connection to the host."""
        return self.run.connections.connect(self.target)
