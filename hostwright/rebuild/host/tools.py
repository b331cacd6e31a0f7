"""Dependencies of the steps of a rebuild."""

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
    """Dependencies of one host's rebuild, provided by its run."""

    run: Run
    target: TargetHost
    ways: Ways
    #: installs a new operating system; takes the reason, the phases, and a function that is called at the start;
    #: returns when SSH answers
    install: Callable[[str, Phases, Callable[[], None]], None]
    trust: Callable[[HostKeyMismatch], None]  #: records the new host key if it is confirmed, else raises
    check: Callable[[], Sequence[Check]]  #: runs the layers' checks
    history: tuple[Rebuild, ...]
    accept: Accept | None = None

    @property
    def hooks(self) -> Hooks | None:
        """The site's commands that drain the host and return it to service."""
        return read_hooks(self.target.host)

    def connect(self) -> RootShell:
        """Open a new connection to the host."""
        return self.run.connections.connect(self.target)
