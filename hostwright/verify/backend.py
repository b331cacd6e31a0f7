"""testinfra over our own connection: the same host keys, jump hosts and sudo as everything else."""

from __future__ import annotations

from collections.abc import Callable
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import Any

from testinfra.backend.base import BaseBackend, CommandResult
from testinfra.host import Host as TestinfraHost

from hostwright.apply.jobs.scripting import work_script
from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh_file
from hostwright.transport import Output
from hostwright.transport.root.become import PATH
from hostwright.transport.root.rootshell import RootShell

ANSWER_S = 30  #: one command of a program that may hang; the time that probes give such a program, too
_KILL_S = 5  #: after which it is killed
TIMED_OUT = 124  #: exit status of timeout(1)
#: Shell command after that of timeout(1): 137, a program that had to be killed, would count as a lost host.
KILLED_AS_TIMED_OUT = f"|| {{ status=$?; [ $status -ne 137 ] || status={TIMED_OUT}; exit $status; }}"
CHECK_TIMEOUT_S = 300.0  #: one command of a check; training a small model on the CPU of a slow host takes a minute

#: Shell words: where the login user's programs of a check may lie. A hardened host's /tmp may not execute.
USER_DIRS = '"/tmp/hostwright-check.$(id -u)" "$HOME/.hostwright-check"'
_NOWHERE = 79  #: our choice of an exit status: the user has no directory in which programs may be run


#: The first line of a check's commands: they are found whatever PATH the host gives to sessions, which is kept for the
#: check of that.
_SEARCH = f"SESSION_PATH=${{PATH-}} PATH={PATH}:${{PATH:-/bin}}; export SESSION_PATH PATH\n"

_LAST_LINES = 3  #: our choice, of what a command printed, in the message of an assertion
_LAST_CHARACTERS = 300  #: our choice, of these

Heard = Callable[[Output], None]


def _unheard(_: Output) -> None:
    """Nobody wants to know what commands print."""


class Completed(CommandResult):  # type: ignore[misc]  # testinfra has no types
    """A command's result. An assertion's message names it by its command, its status and its last lines."""

    def __repr__(self) -> str:
        command = self.command.decode("utf-8", "replace").splitlines() or [""]
        printed = " / ".join((self.stderr.strip() or self.stdout.strip() or "no output").splitlines()[-_LAST_LINES:])
        return f"`{command[0]}{' …' if command[1:] else ''}` (status {self.rc}): {printed[-_LAST_CHARACTERS:]}"


class SessionBackend(BaseBackend):  # type: ignore[misc]  # testinfra has no types
    """A testinfra backend that runs its commands over an open session, as the login user or as root."""

    NAME = "hostwright"

    def __init__(self, shell: RootShell, *, root: bool = False, heard: Heard = _unheard, **kwargs: Any):
        super().__init__(shell.host, **kwargs)
        self._heard = heard
        self._shell = shell
        self._root = root

    def run(self, command: str, *args: str, **kwargs: Any) -> CommandResult:  # noqa: ARG002 (testinfra's signature)
        """Run a command; ``%s`` in it take the arguments, quoted. Raises ``HostError`` where it could not be asked."""
        line = self.get_command(command, *args)
        run = self._shell.attempt if self._root else self._shell.as_login_user
        output = run(("" if self._root else _SEARCH) + line + "\n", timeout_s=CHECK_TIMEOUT_S)
        if output.truncated:
            raise ProtocolError(self._shell.host, f"it printed more than can be read: {line}")
        self._heard(output)
        return Completed(self, output.status, self.encode(line), output.stdout, output.stderr)


def testinfra_host(shell: RootShell, *, root: bool = False, heard: Heard = _unheard) -> TestinfraHost:
    """The testinfra ``host`` object for an open session; ``heard`` is given the output of each command."""
    return TestinfraHost(SessionBackend(shell, root=root, heard=heard))


class BoundedRunner:
    """Runs commands of programs that may hang, each within ``ANSWER_S``. A program that hung is not run again, by any
    process that has the same file of those that hung; meanwhile the others wait for its answer.
    """

    def __init__(self, host: TestinfraHost, hung: Path):
        self._host = host
        self._hung = hung

    def __call__(self, command: str, *arguments: str) -> CommandResult:
        """Run a command as the host's user. Raises ``AssertionError`` if its program, the first word, hangs."""
        program = command.split(maxsplit=1)[0]
        with self._hung.open("a+") as file:
            flock(file, LOCK_EX)
            file.seek(0)
            if program not in file.read().splitlines():
                done = self._host.run(f"timeout -k {_KILL_S} {ANSWER_S} {command} {KILLED_AS_TIMED_OUT}", *arguments)
                if done.rc != TIMED_OUT:
                    return done
                file.write(f"{program}\n")
        raise AssertionError(f"{program} does not answer within {ANSWER_S} s: it hangs")


def program_runner(shell: RootShell, heard: Heard = _unheard) -> Callable[..., CommandResult]:
    """``run(script, *arguments)`` runs a script that makes programs and runs them, in a ``$TMPDIR`` where it may.

    It is run as the login user, and as root on a host where that user may run nothing of his own.
    """

    def run(script: str, *arguments: str) -> CommandResult:
        program = sh_file(__file__, "program.sh", program=script, arguments=arguments, nowhere=_NOWHERE)
        done = testinfra_host(shell, heard=heard).run(work_script(USER_DIRS) + program)
        return (
            done if done.rc != _NOWHERE else testinfra_host(shell, root=True, heard=heard).run(work_script() + program)
        )

    return run
