"""The open root shells on the hosts of a run. One call closes all of them."""

from __future__ import annotations

import threading
from contextlib import suppress
from datetime import UTC, datetime

from hostwright.apply.events import Emit, Observed
from hostwright.apply.rollout.limits import LEFT_ALONE
from hostwright.common.errors import HostwrightError, Stopped
from hostwright.common.secret import Secret
from hostwright.plan.desired import Desired
from hostwright.plan.observing import observe
from hostwright.plan.planning import HostPlan, plan_host
from hostwright.plan.targets import TargetHost
from hostwright.transport import Allowance
from hostwright.transport.root.rootshell import RootShell

#: seconds without data after which a host counts as not responding (our choice). Even distant SSH servers send a banner
#: within half a second.
QUIET_S = 2.0
CUT = "the run was interrupted; what runs on the host continues"


class Connections:
    """Opens the root shells of a run, and closes all of them on Ctrl-C."""

    def __init__(self, password: Secret | None = None):
        self._password = password
        self._allowances: dict[str, Allowance] = {}
        self._open: dict[int, RootShell] = {}
        self._unreached: set[str] = set()  #: hosts whose first connection has failed or is not open yet
        self._left_alone: set[str] = set()
        self._lock = threading.Lock()
        self._cut = False

    def connect(self, target: TargetHost) -> RootShell:
        """Open a root shell on ``target``. The sudo password for all hosts takes precedence over a password in the
        inventory.
        """
        if self._cut:
            raise Stopped(target.name, CUT)
        with self._lock:
            if target.name not in self._allowances:
                self._allowances[target.name] = Allowance()
                self._unreached.add(target.name)
            allowance = self._allowances[target.name]
        shell = target.connect(self._password, allowance)
        with self._lock:
            self._open[id(shell)] = shell
            alone = target.name in self._left_alone
            self._unreached.discard(target.name)
        if alone or self._cut:  # Another thread has called ``close`` or ``detach`` in the meantime.
            shell.close()
            raise Stopped(target.name, LEFT_ALONE if alone else CUT)
        return shell

    def detach(self) -> frozenset[str]:
        """Give up the hosts to which no connection has been opened yet. Return the names of these hosts."""
        with self._lock:
            self._left_alone = set(self._unreached)
            return frozenset(self._left_alone)

    def not_responding(self) -> frozenset[str]:
        """Return the hosts to which no connection has been opened yet and that have sent nothing for ``QUIET_S``."""
        with self._lock:
            return frozenset(name for name in self._unreached if self._allowances[name].silent_s() >= QUIET_S)

    def close(self) -> None:
        """Close all connections permanently. Later calls of ``connect`` raise ``Stopped``."""
        self._cut = True
        with self._lock:
            for shell in self._open.values():
                with suppress(HostwrightError):
                    shell.close()
            self._open.clear()

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """The secrets of the run's connections that must not be recorded: the sudo password given for all hosts."""
        return (self._password,) if self._password else ()

    def password(self, target: TargetHost) -> Secret | None:
        """Return the sudo password for ``target``: the password given for all hosts, else the one in the inventory."""
        return self._password or target.host.become_password

    def plan(self, target: TargetHost, emit: Emit = lambda _: None, *, desired: Desired | None = None) -> HostPlan:
        """Probe and plan ``target`` over a connection of its own. ``desired`` replaces the desired state of
        ``target``.
        """
        wanted = desired or target.desired
        with self.connect(target) as shell:
            facts = observe(shell, wanted)
        with target.memory.turn:
            looked_at = plan_host(wanted, facts, datetime.now(UTC), target.memory)
        emit(Observed(target.name, looked_at.plan, facts))
        return looked_at
