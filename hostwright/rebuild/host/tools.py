"""What the steps of a rebuild work with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostwright.apply.host.outcome import Settings
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

    target: TargetHost
    connect: Callable[[], RootShell]
    settings: Settings
    ways: Ways
    #: a new operating system, for this reason; calls the third when it begins, and returns when SSH answers
    install: Callable[[str, Phases, Callable[[], None]], None]
    trust: Callable[[HostKeyMismatch], None]  #: take the new host key over by intent, or raise
    check: Callable[[], Sequence[Check]]  #: the layers' checks
    history: tuple[Rebuild, ...]
    root: Path  #: of this machine's state (``journal.state_root``)
    inventory: Path
