"""testinfra over our own connection: the same host keys, jump hosts and sudo as everything else."""

from __future__ import annotations

from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.common.secret import Secret
from hostwright.transport import Session
from hostwright.transport.become import check_become, wrap

CHECK_TIMEOUT_S = 300.0  #: one command of a check; training a small model on the CPU of a slow host takes a minute


class SessionBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types
    """A testinfra backend that runs its commands on an open ``Session``, as the login user or as root."""

    NAME = "hostwright"

    def __init__(self, session: Session, password: Secret | None, *, root: bool = False, **kwargs: Any):
        super().__init__(session.host.name, **kwargs)
        self._session = session
        self._password = password
        self._root = root

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 (testinfra's signature)
        """Run a command; ``%s`` in it take the arguments, quoted. The program travels over standard input."""
        line = self.get_command(command, *args)
        script = line + "\n"
        program = wrap("", script, password=self._password) if self._root else script.encode()
        output = self._session.run("/bin/sh", stdin=program, timeout_s=CHECK_TIMEOUT_S)
        if self._root:
            check_become(self._session.host.name, output)
        return self.result(output.status, self.encode(line), output.stdout, output.stderr)


def testinfra_host(session: Session, password: Secret | None, *, root: bool = False) -> TestinfraHost:
    """The testinfra ``host`` object for an open session."""
    return TestinfraHost(SessionBackend(session, password, root=root))
