"""What the steps of a rebuild work with."""

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
    """What the rebuild of one host needs from the run around it."""

    run: Run
    target: TargetHost
    ways: Ways
    #: a new operating system, for this reason; calls the third when it begins, and returns when SSH answers
    install: Callable[[str, Phases, Callable[[], None]], None]
    trust: Callable[[HostKeyMismatch], None]  #: take the new host key over by intent, or raise
    check: Callable[[], Sequence[Check]]  #: the layers' checks
    history: tuple[Rebuild, ...]
    accept: Accept | None = None

    @property
    def hooks(self) -> Hooks | None:
        """The commands that take work off the host and let it back."""
        return read_hooks(self.target.host)

    def connect(self) -> RootShell:
        """A new connection to the host."""
        return self.run.connections.connect(self.target)
