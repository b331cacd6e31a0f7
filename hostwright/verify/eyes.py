"""testinfra over our own connection: the same host keys, jump hosts and sudo as everything else."""

from __future__ import annotations

from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.common.errors import ProtocolError
from hostwright.transport.root.rootshell import RootShell

CHECK_TIMEOUT_S = 300.0  #: one command of a check; training a small model on the CPU of a slow host takes a minute


class SessionBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types
    """A testinfra backend that runs its commands over an open session, as the login user or as root."""

    NAME = "hostwright"

    def __init__(self, shell: RootShell, *, root: bool = False, **kwargs: Any):
        super().__init__(shell.host, **kwargs)
        self._shell = shell
        self._root = root

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 (testinfra's signature)
        """Run a command; ``%s`` in it take the arguments, quoted. Raises ``HostError`` where it could not be asked."""
        line = self.get_command(command, *args)
        run = self._shell.attempt if self._root else self._shell.as_login_user
        output = run(line + "\n", timeout_s=CHECK_TIMEOUT_S)
        if output.truncated:
            raise ProtocolError(self._shell.host, f"it printed more than can be read: {line}")
        return self.result(output.status, self.encode(line), output.stdout, output.stderr)


def testinfra_host(shell: RootShell, *, root: bool = False) -> TestinfraHost:
    """The testinfra ``host`` object for an open session."""
    return TestinfraHost(SessionBackend(shell, root=root))
